"""What the documentation has people type: the commands of a page in its order, and its YAML. Pure."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

REPOSITORY: Final = Path(__file__).parents[2]
NOTES: Final = "NOTES.txt"
PAGES: Final = {path.name: path for path in [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    REPOSITORY / "charts/muster/templates" / NOTES,
]}  # fmt: skip
_PROGRAMS: Final = frozenset({
    "muster", "kubectl", "helm", "make", "pip", "python", "curl", "sed", "kube-scheduler", "etcdctl", "etcdutl"
})  # fmt: skip
_SHELLS: Final = frozenset({"", "console", "sh", "bash"})
_FENCE: Final = re.compile(r" *```(\w*)")
_COMMENT: Final = re.compile(r"\s{2,}#.*$")
_YAML: Final = re.compile(r"^( *)```yaml\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


class Command(NamedTuple):
    """A command, and the line of its page where it stands (of one in running text, where that paragraph begins)."""

    line: int
    text: str


def text_of(page: str) -> str:
    """The content of a page; the notes of the chart as they are for a release `muster` in `muster-system`."""
    text = PAGES[page].read_text(encoding="utf-8")
    if page == NOTES:
        text = text.replace("{{ .Release.Namespace }}", "muster-system").replace("{{ .Release.Name }}", "muster")
        text = re.sub(r"^  (?=\S)", "    ", text, flags=re.MULTILINE)  # its blocks are indented less
    return text


def commands(text: str) -> list[Command]:
    """All that a page has people type: in blocks, and between backticks.

    Between backticks two words, such as `muster explain`, are the name of a command; more are a command.
    """
    found: list[Command] = []
    paragraph: list[str] = []
    fence: str | None = None
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        opened = _FENCE.match(line)
        if opened or not line.strip():
            found += _inline(number - len(paragraph), paragraph)
            paragraph = []
        if opened:
            fence = opened[1] if fence is None else None
        elif typed := _typed(line, fence):
            while typed.endswith("\\"):
                typed = f"{typed[:-1].rstrip()} {next(lines)[1].strip()}"
            found.append(Command(number, _COMMENT.sub("", typed)))
        elif fence is None and line.strip():
            paragraph.append(line)
    return [*found, *_inline(len(text.splitlines()) - len(paragraph), paragraph)]


def _typed(line: str, fence: str | None) -> str:
    """What of a line in a block is typed; empty if it is output, or no block of this kind."""
    if fence is None:
        return line.strip() if line.startswith("    ") and line.split(maxsplit=1)[0] in _PROGRAMS else ""
    if fence not in _SHELLS:
        return ""
    if line.startswith("$ "):
        return line.removeprefix("$ ")
    return line if not fence and line and line.split(maxsplit=1)[0] in _PROGRAMS and line == line.lstrip() else ""


def _inline(number: int, paragraph: list[str]) -> Iterator[Command]:
    for code in re.findall(r"`([^`]+)`", "\n".join(paragraph)):
        words = code.replace("\\|", "|").split()
        if len(words) > 2 and words[0] in _PROGRAMS:
            yield Command(number, " ".join(words))


def documents(text: str) -> Iterator[str]:
    """The YAML documents of a page."""
    for block in _YAML.finditer(text):
        yield from re.split(r"^ *---$", block[2], flags=re.MULTILINE)
