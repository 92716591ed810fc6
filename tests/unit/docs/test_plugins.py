"""What the documentation says of plugins and compat settings is what there is."""

import re
from pathlib import Path

import pytest

from muster.api.volcano.batch import QUIRKS
from muster.runtime import framework
from muster.runtime.settings import KEYS
from muster.volcano.plugins.base import JobPlugin
from muster.volcano.plugins.registry import BUILT_IN

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("plugin", BUILT_IN)
def test_every_plugin_and_flag_is_described(plugin: str) -> None:
    """Its row in the table names each flag."""
    page = (DOCS / "jobs.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{plugin}` |")]
    assert [flag for flag in BUILT_IN[plugin].flags if f"`{flag}`" not in row] == []


def test_every_compat_setting_is_described() -> None:
    """And no other."""
    page = (DOCS / "volcano-differences.md").read_text(encoding="utf-8")
    table = page.partition("| `muster.dev/compat` | effect |")[2].partition("\n\n")[0]
    assert {line.split("`")[1] for line in table.splitlines() if "`" in line} == set(QUIRKS)


def first_cells(page: str, head: str) -> list[str]:
    """The names in back quotes in the first cells of the table with this head, without arguments."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(head)[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in text.splitlines()[2:]]
    return [name for cell in cells for name in re.findall(r"`([\w-]+)[^`]*`", cell)]


def test_plugins_are_listed_in_the_order_in_which_they_run() -> None:
    """The page says so, and names no other."""
    assert first_cells("jobs.md", "| plugin | objects |") == [*BUILT_IN]


def test_the_members_of_a_job_plugin_are_listed() -> None:
    """All that a plugin may override, but for its name."""
    members = {name for name in JobPlugin.__dict__ if not name.startswith("_")} | set(JobPlugin.__annotations__)
    assert set(first_cells("jobs.md", "| name | content |")) == members - {"name"}


def test_the_methods_of_a_runtime_plugin_are_listed() -> None:
    """Those of all protocols; `framework` stands beside its method."""
    kinds = [each for each in vars(framework).values() if getattr(each, "_is_protocol", False)]
    own = [each for each in kinds if each.__module__ == framework.__name__]
    methods = {name for each in own for name in each.__dict__ if callable(each.__dict__[name]) and name[0] != "_"}
    assert {*first_cells("trainjobs.md", "| method | when |")} - {"framework", "Component"} == methods


def test_every_setting_is_listed() -> None:
    """Beside the annotations that are no settings of plugins."""
    others = {"min-member", "rank", "size", "leader"}
    assert set(first_cells("frameworks.md", "| annotation (`muster.dev/…`) |")) == {*KEYS} | others
