"""Job plugins of other packages are found by their entry points; the example in docs works as pip installs it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import asked_plugins
import pytest
from asked_plugins import outcome

from muster.volcano.plugins import registry

ROOT = Path(__file__).resolve().parents[5]
EXAMPLE = ROOT / "docs" / "job-plugin-example"

PROGRAM = Path(asked_plugins.__file__)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which pip has installed the example."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder / "source")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder / "site")]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(folder / "source")], check=True, timeout=120)
    return folder / "site"


def test_its_installation_leaves_nothing_beside_it(site: Path) -> None:
    """Nor do those of the other examples, which are built alike: a user installs them from where they are."""
    built = site.parent / "source"
    assert sorted(each.name for each in built.iterdir()) == sorted(each.name for each in EXAMPLE.iterdir())
    assert all("flit_core.buildapi" in each.read_text() for each in (ROOT / "docs").glob("*example/pyproject.toml"))


def run(site: Path, **plugins: list[str]) -> dict[str, Any]:
    """The outcome of a Job with these plugins, in a process that has the package."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    command = [sys.executable, str(PROGRAM), json.dumps(plugins)]
    output = subprocess.run(command, env=environment, capture_output=True, check=True, text=True, timeout=60).stdout
    answer: dict[str, Any] = json.loads(output)
    return answer


def test_the_example(site: Path) -> None:
    """Admission knows its name; it runs behind the built-in ones; its object and its changes of the pod are there."""
    answer = run(site, settings=["--mount=/etc/app", "lr=0.1"], env=[])
    assert (answer["refused"], answer["plugins"]) == ([], ["Env", "Guarded"])
    assert answer["objects"] == [{"metadata": {"name": "j-settings"}, "data": {"lr": "0.1"}}]
    (container,) = answer["pod"]["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "settings", "mountPath": "/etc/app"}]
    assert container["env"][-1] == {"name": "SETTINGS", "value": "/etc/app"}


def test_its_errors_are_told(site: Path) -> None:
    """Its own sentence, for the Job's status."""
    answer = run(site, settings=["oops"])
    assert answer["error"] == "spec.plugins[settings]: 'oops' must be key=value, for example lr=0.1"


def test_its_flags_and_its_check(site: Path) -> None:
    """Admission warns of a flag that it does not have, and refuses what it refuses."""
    answer = run(site, settings=["--mount=etc", "--mode=1", "lr=0.1"])
    assert answer["refused"] == [["spec.plugins[settings]", "--mount must be an absolute path, for example /etc/app"]]
    assert answer["warnings"] == ["spec.plugins[settings]: unknown flag mode is ignored; its flags are mount"]


Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package `other` of a source in this process, with these plugins: name → where it is."""

    def package(source: str, **plugins: str) -> None:
        entries = [EntryPoint(name, where, registry.ENTRY_POINTS) for name, where in plugins.items()]
        (tmp_path / "other.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(registry, "entry_points", lambda group: entries if group == registry.ENTRY_POINTS else [])
        registry.known.cache_clear()

    yield package
    registry.known.cache_clear()
    sys.modules.pop("other", None)


def test_a_class_of_its_own(install: Install) -> None:
    """A plugin need not be a subclass, and has only those methods that it needs."""
    source = (
        "class Plugin:\n"
        "    requires = ['svc']\n"
        "    env_in_init_containers = False\n"
        "    def __init__(self, arguments): pass\n"
        "    def world(self, tasks): return ['w', 'none']\n"
        "    def ports(self, job, task): return {'own': 7000}\n"
        "    def env(self, job, slot): return [{'name': 'SLOT', 'value': slot.name}]\n"
    )
    install(source, own="other:Plugin")
    answer = outcome(own=["--anything"])
    assert (answer["required"], answer["ports"], answer["error"]) == (["svc"], [7000], "")
    assert (answer["refused"], answer["warnings"], answer["objects"]) == ([], [], [])
    spec = answer["pod"]["spec"]
    assert spec["containers"][0]["env"] == [{"name": "SLOT", "value": "j-w-0"}]
    assert "env" not in spec["initContainers"][0]
    assert registry.world({"own": []}, ["w", "v"]) == {"w"}


def test_a_broken_package_harms_only_those_that_ask_for_it(install: Install) -> None:
    """One that cannot be imported, and ones whose methods fail; a built-in name is not taken from us."""
    source = (
        "class Plugin:\n    def __init__(self, arguments): self.objects = 1\n"
        "class Env:\n    def __init__(self, arguments): pass\n    def env(self, job, slot): return ['A=1']\n"
        "class Checks:\n    def __init__(self, arguments): pass\n"
        "    def check(self, job): raise KeyError('x')\n    def ports(self, job, task): return ['80']\n"
        "    def world(self, tasks): return 1\n"
    )
    plugins = {"missing": "nowhere:Plugin", "fails": "other:Plugin", "env": "other:Plugin"}
    install(source, **plugins, unfit="other:Env", checks="other:Checks")
    assert outcome(env=[])["plugins"] == ["Env"]
    missing = outcome(missing=[])
    assert "nowhere:Plugin cannot be loaded: ModuleNotFoundError" in missing["error"]
    assert (missing["refused"], missing["required"], missing["ports"]) == ([], [], []), "the Job's status says it"
    assert "objects failed: TypeError: 'int' object is not callable" in outcome(fails=[])["error"]
    assert "spec.plugins[unfit]: env failed: TypeError" in outcome(unfit=[])["error"]
    checks = outcome(checks=[])
    assert checks["refused"] == [["spec.plugins[checks]", "spec.plugins[checks]: check failed: KeyError: 'x'"]]
    assert checks["ports"] == []
    assert registry.world({key: [] for key in ("missing", "checks", "unknown")}, ["w"]) == set()
