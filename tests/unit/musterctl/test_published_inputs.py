"""Commands and the page plan with what the extenders have published, and say where they cannot."""

from pathlib import Path
from typing import Any

import pytest
from explain_world import ExplainWorld
from structlog.testing import capture_logs

from extender.explain.clusterdump import ClusterDump, save
from extender.planner.memory import Memory, PublishedInputs
from extender.planner.timing import DEFAULTS, Timing
from muster.api.muster.configuration import MEMORY, TIMING, PublishedConfig
from muster.kube.errors import Forbidden, NotFound
from musterctl.cluster import Where
from musterctl.reader import ClusterReader
from musterctl.running import inputs_of
from web.serving import put_configurations

GOOD = {TIMING: '{"growthDelay":600}', MEMORY: '{"gone":["n"]}'}
KNOWN = PublishedInputs(Timing(growth_delay_s=600.0), Memory(gone=("n",)))


class Client:
    """A cluster with one ConfigMap."""

    def __init__(self, data: dict[str, str]) -> None:
        self.data = data

    def get(self, _resource: object, name: str, _namespace: str) -> PublishedConfig:
        """Return it."""
        if name != "muster-planner":
            raise NotFound("there is none")
        return PublishedConfig(data=self.data)


def test_what_is_published_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """By node pool."""
    assert inputs_of({"": PublishedConfig(data=GOOD)}, [""]) == {"": KNOWN}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("told", "note"), [
    (None, "timing is used in pool b, as the extender has not published another (ConfigMap muster-planner-b)"),
    (PublishedConfig(data=None), "as the extender has not published another"),
    (Forbidden("you may not get configmaps"), "timing is used in pool b, as you may not get configmaps"),
    (PublishedConfig(data={TIMING: '{"faultStop":7}'}), "in ConfigMap muster-planner-b faultStop is 7 (Expected"),
    (PublishedConfig(data={TIMING: "{}", MEMORY: "{"}), "muster-planner-b memory.json cannot be parsed"),
])  # fmt: skip
def test_a_note_tells_where_defaults_count(told: Any, note: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As the extender is older, has not led yet, or may not be read; or as a value is none."""
    found = inputs_of({"b": told} if told else {}, ["b"])
    assert {each.timing for each in found.values()} <= {DEFAULTS}
    assert note in capsys.readouterr().err


def test_a_snapshot_without_timing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of this version has it; the option wins."""
    world = ExplainWorld()
    world.timing = Timing(growth_delay_s=600.0)
    dump, file = world.dump(), tmp_path / "snapshot"
    file.write_bytes(save(dump))
    assert ClusterReader(Where(), snapshot=file)().own_inputs.timing == world.timing
    assert capsys.readouterr().err == ""
    timing = ClusterReader(Where(), snapshot=file, recovery_s=5.0)().own_inputs.timing
    assert timing == Timing(growth_delay_s=600.0, recovery_s=5.0)
    dump.inputs = {}
    file.write_bytes(save(dump))
    assert ClusterReader(Where(), snapshot=file)().own_inputs == PublishedInputs()
    assert f"the planner's default timing is used, as {file} has no other" in capsys.readouterr().err


def test_the_page_plans_with_what_is_published() -> None:
    """What it cannot read it logs, and leaves out."""
    dump = ClusterDump(0.0)
    client: Any = Client(GOOD)
    put_configurations(dump, client, "muster-system")
    assert dump.own_inputs == KNOWN
    client.data = {TIMING: "[]"}
    with capture_logs() as lines:
        put_configurations(dump, client, "muster-system")
    assert dump.own_inputs == PublishedInputs()
    assert [(line["event"], line["pool"]) for line in lines] == [("published inputs of the planner cannot be used", "")]


@pytest.mark.parametrize(
    ("error", "logged"), [(NotFound("there is none"), []), (Forbidden("you may not get it"), [""])]
)
def test_the_page_logs_that_it_plans_with_the_defaults(error: Exception, logged: list[str]) -> None:
    """But not that an extender has published nothing yet."""

    def get(_resource: object, name: str, _namespace: str) -> PublishedConfig:
        raise error if name == "muster-planner" else NotFound("there is none")

    client: Any = Client({})
    client.get = get
    with capture_logs() as lines:
        put_configurations(ClusterDump(0.0), client, "muster-system")
    assert [line["pool"] for line in lines] == logged
