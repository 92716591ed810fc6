"""What the documentation says of plugins and compat settings is what there is."""

from pathlib import Path

import pytest

from muster.api.volcano.compat import KNOWN
from muster.volcano.plugins.registry import BUILT_IN

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("plugin", BUILT_IN)
def test_every_plugin_and_flag_is_described(plugin: str) -> None:
    """Its row in the table names each flag."""
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{plugin}` |")]
    assert [flag for flag in BUILT_IN[plugin].flags if f"`{flag}`" not in row] == []


def test_every_compat_setting_is_described() -> None:
    """And no other."""
    page = (DOCS / "volcano-differences.md").read_text(encoding="utf-8")
    table = page.partition("| `muster.dev/compat` | effect |")[2].partition("\n\n")[0]
    assert {line.split("`")[1] for line in table.splitlines() if "`" in line} == set(KNOWN)
