"""The release notes: the section of the version in CHANGELOG.md."""

import re

from release.source import ReleaseError

_SECTION = re.compile(r"(?m)^## (?P<title>.+)\n(?P<text>(?:(?!## ).*\n?)*)")
_UNRELEASED = "(unreleased)"


def notes(changelog: str, version: str) -> str:
    """Return the notes: the section of the version, else the section of what is unreleased."""
    sections = {found["title"]: found["text"].strip() for found in _SECTION.finditer(changelog)}
    waiting = [title for title in sections if title.endswith(_UNRELEASED)]
    title = next((title for title in [*sections, *waiting] if title.split()[0] == version), next(iter(waiting), None))
    if title is None or not sections[title]:
        raise ReleaseError(f"CHANGELOG.md describes no changes under `## {version}` or `## … {_UNRELEASED}`")
    return f"# Muster {version}\n\n{sections[title]}\n"
