"""The image as far as it can be judged without a container engine."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from dockerfile import FILE, ROOT, copied, stages

from musterctl.kind import image

CHART = ROOT / "charts/muster/templates"
RULES = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


def test_the_linter_has_nothing_to_say() -> None:
    """Hadolint, with all its rules."""
    program = Path(sys.executable).with_name("hadolint")
    result = subprocess.run([program, "--no-color", FILE], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


def test_the_linter_sees_mistakes(tmp_path: Path) -> None:
    """A base without version and a root that stays root are told."""
    (tmp_path / "Dockerfile").write_text("FROM debian\nUSER root\n", encoding="utf-8")
    program = Path(sys.executable).with_name("hadolint")
    result = subprocess.run([program, tmp_path / "Dockerfile"], capture_output=True, text=True, check=False)
    assert {"DL3006", "DL3002"} <= set(re.findall(r"DL\d+", result.stdout))


def test_what_is_copied_is_there_and_sent() -> None:
    """Nothing that the Dockerfile takes is missing or ignored, and nothing else is sent to the engine."""
    assert copied()
    assert [source for source in copied() if not (ROOT / source).exists()] == []
    sent = {rule.removeprefix("!") for rule in RULES if rule.startswith("!")}
    assert sent == set(copied()) - {"./"}
    assert "*" in RULES


def test_all_packages_are_copied() -> None:
    """A package that is new in the wheel is in the image, too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {each.rstrip("*") for each in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages <= set(copied())


def test_the_base_is_an_argument_of_all_stages() -> None:
    """None is written down that would grow old, and both stages have the same Python."""
    before, *real = stages()
    assert [(one.name, one.text) for one in before] == [("ARG", "BASE")]
    assert [stage[0].words[0] for stage in real] == ["${BASE}", "${BASE}"]


def test_the_final_stage_neither_builds_nor_is_root() -> None:
    """It takes the environment from the other, and runs as the user of the chart's pods."""
    final = stages()[-1]
    assert [one.text for one in final if one.name == "RUN"] == [
        "python -m pip uninstall --quiet --yes --root-user-action=ignore wheel setuptools pip"
    ]
    assert [one.flags for one in final if one.name == "COPY"] == [["--from=build"]]
    (user,) = (one.text for one in final if one.name == "USER")
    helpers = (CHART / "_helpers.tpl").read_text(encoding="utf-8")
    assert user == ":".join(re.findall(r"runAs(?:User|Group): (\d+)", helpers))


def test_only_hashed_wheels_are_installed() -> None:
    """No package is compiled, and none is taken that the locks do not know."""
    (build,) = stages()[1:-1]
    for one in build:
        for call in re.findall(r"pip (?:--python=\S+ )?install ([^&]+)", one.text):
            own = "--no-deps" in call and "/wheel/" in call
            assert own or {"--require-hashes", "--only-binary=:all:"} <= set(call.split()), call


def test_the_chart_starts_what_the_image_has() -> None:
    """Each command of Muster's containers is `python -m` with a package that can be run so."""
    found = set()
    for template in sorted(CHART.rglob("*.yaml")) + sorted(CHART.rglob("*.tpl")):
        text = template.read_text(encoding="utf-8")
        found |= set(re.findall(r"command: \[python, -m, (\w+)\]", text))
        others = re.findall(r"command: \[(?!python,)([^\]]+)\]", text)
        assert all("kube-scheduler" in each for each in others), template
    assert found == {"webhook", "extender", "controller", "history", "web"}
    for package in found:
        assert importlib.util.find_spec(f"{package}.__main__") is not None
        assert package in copied()


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_what_the_engine_is_told(engine: str) -> None:
    """Every argument of the Dockerfile has a value; podman stamps all files with the time itself."""
    command = image.command(engine, base="python@sha256:0", lock="requirements.lock", epoch=5, id_file=Path("/id"))
    given = {re.split("[= ]", each)[1] for each in command if each.startswith("--build-arg=")}
    wanted = {one.text.partition("=")[0] for stage in stages() for one in stage if one.name == "ARG"}
    assert given == wanted
    assert command[0] == "build"
    assert ("--timestamp=5" in command) == (engine == "podman")
    assert command[-1] == str(ROOT)
