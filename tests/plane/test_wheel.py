"""A wheel has all that Muster needs: installed somewhere else, it renders the chart as the repository does."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from charts import text
from musterctl.chart.files import CHART

pytestmark = pytest.mark.plane
ROOT = Path(__file__).parents[2]
PACKAGES = ("muster", "musterctl", "webhook", "extender", "controller", "certs", "charts")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the repository, with what is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source)
    _pip("wheel", "--no-build-isolation", f"--wheel-dir={folder}", str(source))
    (found,) = folder.glob("*.whl")
    return found


def _pip(verb: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--no-deps", "--disable-pip-version-check", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_it_has_every_file_of_the_packages(wheel: Path) -> None:
    """Programs, their data, and the chart; what only this repository needs stays here."""
    there = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        if package != "charts"
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    chart = {f"muster/charts/muster/{path.relative_to(CHART)}" for path in CHART.rglob("*") if path.is_file()}
    assert not sorted((wanted | chart) - there)
    assert not [name for name in there if name.startswith(("tests/", "docs/", "charts/"))]


def test_it_renders_the_chart(wheel: Path, tmp_path: Path) -> None:
    """Far away from the repository, with the packages that the wheel needs."""
    _pip("install", f"--target={tmp_path / 'site'}", str(wheel))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    script = "import musterctl; print(musterctl.__file__); musterctl.main(['render'])"
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    where, _, rendered = result.stdout.partition("\n")
    assert Path(where).is_relative_to(tmp_path)
    assert rendered == text({})
