"""Plugins of other packages are found by their entry points; the package in docs works as it stands."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from extender_world import World, only, slots

from extender.planner.cycle import parts_of, registry
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
PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example."""
    source, target = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source)
    subprocess.run([*PIP, "--target", str(target), str(source)], check=True)
    return target


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example can be imported, and its entry point found, as in a process that starts now."""
    monkeypatch.syspath_prepend(str(site))
    registry.cache_clear()
    yield
    registry.cache_clear()


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
    assert slots(only(world.plan(), decisions.Place)) == {"worker": ["node-2"]}
    world.gang("b", {"worker": (2, {"nvidia.com/gpu": 8})})
    assert "1 quiet" in only(world.plan(), decisions.Unschedulable).message


@pytest.mark.usefixtures("installed")
def test_its_arguments_are_checked() -> None:
    """As those of the built-in ones."""
    with pytest.raises(ValueError, match="plugin 'quietnodes' has no argument 'lable'; valid arguments: label"):
        parts_of(config.parse(CONFIG.replace("label:", "lable:")))
