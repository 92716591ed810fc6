"""Every `muster` command in the documentation is one that the command line understands; every page is in the site."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from musterctl.app import main

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "charts/muster/templates/NOTES.txt"])
STARTS = re.compile(r"^(?:\$ |    +|\t)(?P<line>.*\bmuster .*)$")
INLINE = re.compile(r"`(?P<line>muster [^`]+)`")
ENDS = frozenset({"|", "||", "&&", ";", ">", ">>", "<", "&"})
ELLIPSES = ("…", "...")


def commands(text: str) -> Iterator[list[str]]:
    """What follows `muster` in blocks of code and between backticks, up to a pipe or the like."""
    for line in text.splitlines():
        found = STARTS.match(line)
        for each in [found] if found else INLINE.finditer(line):
            yield from _calls(each["line"])


def _calls(line: str) -> Iterator[list[str]]:
    try:
        words = shlex.split(line.replace("$(", " ; ").replace(")", " ; ").replace("\\|", " | "), comments=True)
    except ValueError:
        return
    segment: list[str] = []
    for word in [*words, ";"]:
        if word not in ENDS:
            segment.append(word)
            continue
        if segment[:1] == ["$"]:
            segment = segment[1:]
        if segment[:1] == ["muster"]:
            yield segment[1:]
        segment = []


def parse(words: list[str]) -> None:
    """Finds the command and its options; what files and names they have is not asked."""
    command: click.Command = main
    context = click.Context(main, info_name="muster")
    while isinstance(command, click.Group):
        if not words or words[0] in {"--help", "-h", "--version"}:
            return
        name, *words = words
        found = command.get_command(context, name)
        if found is None:
            raise click.UsageError(f"there is no command {name}")
        command, context = found, click.Context(found, info_name=name, parent=context, **found.context_settings)
    if not any(each.startswith(ELLIPSES) for each in words):
        command.make_parser(context).parse_args([word for word in words if word not in {"--help", "-h"}])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_understood(page: Path) -> None:
    """Each sub-command and each option that a page names exists."""
    wrong = []
    for words in commands(page.read_text(encoding="utf-8")):
        try:
            parse(words)
        except click.UsageError as error:
            wrong.append(f"muster {shlex.join(words)}: {error.format_message()}")
    assert wrong == []


def test_there_are_many() -> None:
    """The patterns find what the pages say, and what is wrong is seen."""
    assert sum(len(list(commands(page.read_text(encoding="utf-8")))) for page in PAGES) > 100
    for wrong in (["jobs", "list"], ["job", "lst"], ["job", "list", "--everything"]):
        with pytest.raises(click.UsageError):
            parse(wrong)
    assert list(commands("$ kubectl get x | muster job run -f - && muster status  # and so on")) == [
        ["job", "run", "-f", "-"],
        ["status"],
    ]


def test_every_page_is_in_the_site() -> None:
    """Once; the strict build finds links that lead nowhere."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = [page for each in nav for page in (each if isinstance(each, list) else [each])]
    flat = [page for each in listed for page in (next(iter(each.values())) if isinstance(each, dict) else [each])]
    docs = ROOT / "docs"
    pages = [str(page.relative_to(docs)) for page in docs.glob("**/*.md")]
    assert sorted(flat) == sorted(pages)


def test_links_lead_somewhere() -> None:
    """From page to page, also for those who read the files as they are."""
    for page in (ROOT / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize(("page", "name"), [("quickstart.md", "up"), ("why.md", "simulate")])
def test_a_page_names_every_option_of_its_command(page: str, name: str) -> None:
    """In one of its spellings, but for those of many commands: which cluster, which namespace, which form."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    command = main.get_command(click.Context(main), name)
    assert command is not None
    shared = {"--help", "--namespace", "--output"}
    options = [option for option in command.params if isinstance(option, click.Option)]
    missing = [option.opts for option in options if not any(spelling in text for spelling in option.opts)]
    assert [spellings for spellings in missing if not shared & {*spellings}] == []
