"""A wheel has all that Muster needs: installed into an empty environment, it renders the chart and runs `muster up`."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from gang_jobs import job

from charts import text
from muster.chart import CHART
from musterctl.commands.demo import EXAMPLES

pytestmark = [pytest.mark.plane, pytest.mark.long]
ROOT = Path(__file__).parents[2]
PACKAGES = ("muster", "musterctl", "web", "webhook", "extender", "controller", "history", "gangs", "certs", "charts")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the repository, with what is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in (*PACKAGES, "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source)
    _pip("wheel", "--no-build-isolation", f"--wheel-dir={folder}", str(source))
    (found,) = folder.glob("*.whl")
    return found


def _pip(verb: str, *arguments: str, python: str | Path = sys.executable) -> None:
    command = [python, "-m", "pip", verb, "--quiet", "--no-deps", "--disable-pip-version-check", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_it_has_every_file_of_the_packages(wheel: Path) -> None:
    """Programs, their data, the chart and the demo's jobs; what only this repository needs stays here."""
    there = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        if package != "charts"
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    chart = {f"muster/charts/muster/{path.relative_to(CHART)}" for path in CHART.rglob("*") if path.is_file()}
    examples = {f"musterctl/examples/{path.name}" for path in EXAMPLES.glob("*.yaml")}
    assert not sorted((wanted | chart | examples) - there)
    assert not [name for name in there if name.startswith(("tests/", "docs/", "charts/", "examples/"))]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel, what the lock pins, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
    programs = folder / "bin"
    _pip("install", "--require-hashes", f"--requirement={ROOT / 'requirements.lock'}", python=programs / "python")
    _pip("install", str(wheel), python=programs / "python")
    return programs


@pytest.fixture
def muster(installed: Path, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Runs the environment's `muster` far away from the repository, and ends the planes that it left there."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    environment = {**kept, "XDG_STATE_HOME": str(tmp_path / "state")}

    def run(*arguments: str, check: bool = True) -> str:
        command = [installed / "muster", *arguments]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert not check or result.returncode == 0, result.stderr
        return result.stdout

    yield run
    for folder in (tmp_path / "state").glob("muster/*/"):
        run("down", "--name", folder.name, check=False)


def test_it_has_what_the_lock_pins(installed: Path) -> None:
    """Nothing that the wheel asks for is missing in the lock, or there in another version."""
    command = [installed / "python", "-m", "pip", "check", "--disable-pip-version-check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_it_renders_the_chart(muster: Callable[..., str]) -> None:
    """As the repository does."""
    assert muster("render") == text({})


def test_it_runs_a_plane(muster: Callable[..., str], installed: Path, tmp_path: Path) -> None:
    """`muster up`, a gang from submission to completion, `muster down`; every process runs out of the environment."""
    muster("up", "--name", "wheel", "--nodes", "2")
    folder = tmp_path / "state/muster/wheel"
    for process in ("webhook", "extender", "controller"):
        pid = int((folder / "run" / f"{process}.pid").read_text())
        program, *_ = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
        assert Path(program).parent == installed
    (tmp_path / "gang.yaml").write_text(yaml.safe_dump(job("gang", "default", replicas=2, run_s=10)), encoding="utf-8")
    assert "gang" in muster("job", "run", "--name", "wheel", "-f", "gang.yaml")
    for phase in ("Running", "Completed"):
        state = f"--for=jsonpath={{.status.state.phase}}={phase}"
        muster("kubectl", "--name", "wheel", "wait", state, "--timeout=60s", "vcjob/gang")
        if phase == "Running":  # later the Placement goes with the PodGroup
            placement = "jsonpath={.items[*].status.phase}"
            assert muster("kubectl", "--name", "wheel", "get", "placements", "--output", placement) == "Bound"
    assert muster("down", "--name", "wheel") == "plane wheel is down\n"
    assert not folder.exists()


@pytest.mark.parametrize("program", ["muster", "kubectl-muster"])
def test_its_programs_say_their_version(installed: Path, program: str) -> None:
    """Both names of the command line are there."""
    result = subprocess.run([installed / program, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.endswith(f"version {version('muster')}\n")
