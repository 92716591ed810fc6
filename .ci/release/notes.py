"""The release notes: the section of the version in CHANGELOG.md."""

import re

from release.source import ReleaseError

_SECTION = re.compile(r"(?m)^## (?P<title>.+)\n(?P<text>(?:(?!## ).*\n?)*)")
_PAGE = re.compile(r"\]\((?!https?://|#)")
"""Pattern of the start of a link to a page of the repository."""
_UNRELEASED = "(unreleased)"


def notes(changelog: str, version: str, download: str = "") -> str:
    """Return the notes: the section of the version, else the unreleased section.

    With the address of the release's files, links to pages lead to the repository there.
    """
    sections = {found["title"]: found["text"].strip() for found in _SECTION.finditer(changelog)}
    waiting = [title for title in sections if title.endswith(_UNRELEASED)]
    title = next((title for title in [*sections, *waiting] if title.split()[0] == version), next(iter(waiting), None))
    if title is None or not sections[title]:
        raise ReleaseError(f"CHANGELOG.md describes no changes under `## {version}` or `## … {_UNRELEASED}`")
    text = sections[title]
    if download:
        repository = download.partition("/releases/")[0]
        text = _PAGE.sub(f"]({repository}/blob/v{version}/", text)
    return f"# Muster {version}\n\n{text}\n"
