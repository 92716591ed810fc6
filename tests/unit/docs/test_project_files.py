"""The project's own pages: policies, governance, support, and the answers to questionnaires about security."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGES = (
    *("ADOPTERS.md", "CODE_OF_CONDUCT.md", "GOVERNANCE.md", "MAINTAINERS.md", "ROADMAP.md", "SECURITY.md"),
    *("SUPPORT.md", "docs/internals/self-assessment.md"),
)
PLACEHOLDER = re.compile(r"OWNER-[A-Z]+")
INSIGHTS = yaml.safe_load((ROOT / "SECURITY-INSIGHTS.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PAGES)
def test_links_and_files_exist(name: str) -> None:
    """Each linked page, and each file in back quotes."""
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    targets = [page.parent / each for each in re.findall(r"\]\((?!https:)([^)#]+)", text)]
    targets += [ROOT / each for each in re.findall(r"`(\.?[\w./-]+(?:\.(?:md|yml|toml|lock|py)|/run|file))`", text)]
    assert [str(each) for each in targets if not each.exists()] == []


def test_the_owner_fills_in_two_files() -> None:
    """All other pages refer to them."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (*ROOT.glob("*.md"), *ROOT.glob("*.yml"))}
    assert {name for name, text in texts.items() if PLACEHOLDER.search(text)} == {
        "MAINTAINERS.md",
        "SECURITY-INSIGHTS.yml",
    }


def test_security_insights_have_the_fields_of_the_schema() -> None:
    """Version 2.0.0 of the schema requires these, and dates and links in its form."""
    header, project, repository = (INSIGHTS[name] for name in ("header", "project", "repository"))
    assert header.keys() >= {"last-reviewed", "last-updated", "schema-version", "url"}
    assert project.keys() >= {"name", "administrators", "repositories", "vulnerability-reporting"}
    required = {"url", "status", "accepts-change-request", "accepts-automated-change-request", "core-team", "license"}
    assert repository.keys() >= {*required, "security"}
    assert repository["security"]["assessments"]["self"]["comment"]
    assert header["schema-version"] == "2.0.0"


def test_security_insights_link_to_files() -> None:
    """Each link below the repository's address leads to a file of it."""
    base = f"{INSIGHTS['repository']['url']}/"
    links = [each.removeprefix(base) for each in strings(INSIGHTS) if each.startswith(base)]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def strings(value: object) -> list[str]:
    """Return all strings in a document."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []
