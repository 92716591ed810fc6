"""What the documentation says of layers and sizes of the code is what pyproject.toml and the files say."""

import re
import tomllib
from pathlib import Path
from statistics import quantiles

import pytest

ROOT = Path(__file__).parents[3]
CHAIN = re.compile(r"musterctl (?:→|─▶)[^`]*?muster\.api")
WALKS = 5
MOST_MODULES = 12


def layers() -> list[list[str]]:
    """The layers of the code, the highest first, each with its packages."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    [contract] = [each for each in tool["importlinter"]["contracts"] if each["name"] == "imports go down only"]
    return [re.findall(r"[\w.]+", layer) for layer in contract["layers"]]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_a_page_has_the_layers_that_are_checked(page: str) -> None:
    """In their order, with those that are beside each other."""
    [chain] = CHAIN.findall((ROOT / page).read_text(encoding="utf-8"))
    said = [re.findall(r"[\w.]+", layer) for layer in re.split("→|─▶", chain)]
    assert said == layers()


def test_modules_have_the_size_that_contributors_are_told() -> None:
    """Of all, nineteen of twenty are not longer; the one in the middle is not shorter."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [(low, high)] = re.findall(r"A module has (\d+)-(\d+) lines", text)
    packages = {layer.partition(".")[0] for names in layers() for layer in names}
    files = [path for package in packages for path in (ROOT / package).rglob("*.py") if path.name[:2] != "__"]
    lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in files]
    twentieths = quantiles(lengths, n=20)
    assert int(low) <= twentieths[9]
    assert twentieths[-1] <= int(high)


def test_a_walk_is_short() -> None:
    """Each of the five leads through few modules, so that one can follow it."""
    walks = re.split(r"^## ", (ROOT / "docs/architecture.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    modules = [set(re.findall(r"`([\w/]+\.py)`", walk)) for walk in walks if re.match(r"\d\. ", walk)]
    assert [len(each) for each in modules if len(each) > MOST_MODULES] == []
    assert len(modules) == WALKS


def test_questions_of_newcomers_lead_to_files() -> None:
    """The table stands before the walks."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    [table] = re.findall(r"\| question \|.*?\n\n", page.partition("## 1.")[0], flags=re.DOTALL)
    files = re.findall(r"`([\w/]+\.py)`", table)
    assert len(files) > table.count("?")
    assert [file for file in files if not (ROOT / file).exists()] == []
