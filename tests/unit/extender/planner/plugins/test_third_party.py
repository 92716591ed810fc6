"""Plugins of other packages are found by their entry points; the example in docs works as it stands."""

from pathlib import Path

import pytest
from extender_world import World, of, seats

from extender.planner.cycle import parts_of
from extender.planner.framework import config, decisions

EXAMPLE = Path(__file__).parents[5] / "docs" / "plugin-example"
CONFIG = """
actions: "enqueue, allocate"
tiers:
  - plugins:
      - {name: gang}
      - {name: predicates}
      - {name: quietnodes, arguments: {label: example.com/hush}}
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example as if pip had installed it."""
    (tmp_path / "quietnodes.py").write_text((EXAMPLE / "quietnodes.py").read_text())
    info = tmp_path / "quietnodes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quietnodes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[muster.extender.plugins]\nquietnodes = quietnodes:QuietNodes\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
def test_the_example_plugin_refuses_and_scores() -> None:
    """node-0 is refused, node-2 has the better score, and the refusal is named."""
    _, plugins = parts_of(config.parse(CONFIG))
    world = World()
    world.plugins = plugins
    world.node("node-0", labels={"example.com/hush": "yes"})
    world.node("node-1", labels={"example.com/hush": "no"})
    world.node("node-2")
    world.gang("a", {"worker": (1, {"nvidia.com/gpu": 8})})
    [place] = of(world.plan(), decisions.Place)
    assert seats(place) == {"worker": ["node-2"]}
    world.gang("b", {"worker": (2, {"nvidia.com/gpu": 8})})
    [waits] = of(world.plan(), decisions.Unschedulable)
    assert "1 quiet" in waits.message


@pytest.mark.usefixtures("installed")
def test_its_arguments_are_checked() -> None:
    """As those of the built-in ones."""
    with pytest.raises(ValueError, match="plugin 'quietnodes' has no argument 'lable'; valid arguments: label"):
        parts_of(config.parse(CONFIG.replace("label:", "lable:")))
