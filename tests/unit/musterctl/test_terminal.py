"""Texts of tenants control no terminal, whichever command prints them."""

import json
import re
import sys
from io import StringIO
from typing import Any

import click
import pytest
import yaml
from builders import manifests
from rich.table import Table
from rich.text import Text

from extender.explain.text import TextLine
from musterctl.output.report import print_lines, print_report
from musterctl.output.table import PrintedTable
from musterctl.output.terminal import Console, GuardedStream, guarded

EVIL = "\x1b]0;root\x07\x1b[2J\x9b2J\x1b]52;c;ZXZpbA==\x1b\\\x08\x7f\rits \x1b[32mown\x1b[0m"
"""It sets a title, clears the screen (twice), fills the clipboard, and overwrites the preceding text."""
SHOWN = r"\u001b]0;root\u0007\u009b2J\u001b]52;c;ZXZpbA==\u001b\\u0008\u007f"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f]")
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(autouse=True)
def gang(lists: dict[str, Any]) -> None:
    """A gang that waits, with a reason, a queue, a pod and a log of a tenant that means harm."""
    owner = manifests.owner("train", "Job", "batch/v1", "j")
    lists[GROUPS] = [manifests.pod_group("g", 2, "default", queue=EVIL, uid="g", owner=owner, phase="Inqueue")]
    waits = [{"type": "Unschedulable", "status": "True", "reason": EVIL, "message": EVIL}]
    lists[GROUPS][0]["status"]["conditions"] = waits
    lists[PODS] = [manifests.pod("train-0", "default", node="n", phase="Running", gang="g", task="worker", index=0)]
    lists[f"{PODS}/train-0/log"] = f"{EVIL}\n"


@pytest.mark.parametrize(("command", "code"), [
    ("ps", 0), ("ps -l", 0), ("ps -o wide", 0), ("ps -o json", 0), ("ps -o yaml", 0), ("ps --queue EVIL", 0),
    ("logs train", 0), ("logs train --all", 0), ("logs EVIL", 1), ("explain gang EVIL", 1), ("job view EVIL", 2),
    ("queue list -o EVIL", 2), ("EVIL", 2),
])  # fmt: skip
def test_no_command_prints_control_characters(muster: Any, command: str, code: int) -> None:
    """In lists, data, logs and errors, on both streams."""
    result = muster(*(EVIL if word == "EVIL" else word for word in command.split()), code=code)
    assert not CONTROL.findall(result.stdout + result.stderr)


def test_data_for_programs_keeps_its_meaning(muster: Any) -> None:
    """JSON and YAML escape the same characters."""
    for read, output in ((json.loads, "json"), (yaml.safe_load, "yaml")):
        assert read(muster("ps", "-o", output).stdout)["gangs"][0]["message"] == EVIL


def test_hidden_characters_are_shown(muster: Any) -> None:
    """Escaped as in JSON, without colours; what would be written over is a line of its own. Click removes a clear."""
    assert muster("logs", "train").stdout.splitlines() == [SHOWN, "its own"]


def test_styles_are_the_commands_own() -> None:
    """On a terminal a console writes its own colours, also in tables, but no colours of a text."""
    out = StringIO()
    console = Console(file=GuardedStream(out).rich_proxied_file, force_terminal=True, color_system="standard")
    table = Table("name", box=None)
    table.add_row(f"[green]{EVIL}[/]")
    console.print(table, Text(EVIL, "red"), Text.from_ansi(EVIL), EVIL, end="")
    assert "\x1b[31m" in out.getvalue()
    assert not CONTROL.findall(re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()))


def test_every_way_to_print_is_guarded(capsys: pytest.CaptureFixture[str]) -> None:
    """Click, reports, tables, and what Python itself writes."""
    with guarded():
        click.echo(EVIL)
        click.echo(EVIL, err=True)
        sys.stdout.writelines([EVIL])
        print_report(None, [EVIL, TextLine("why", EVIL, "good")], "text")
        print_report({"why": EVIL}, [], "yaml")
        PrintedTable([EVIL]).show([[EVIL]])
    assert not CONTROL.findall("".join(capsys.readouterr()))


def test_a_label_is_apart_from_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Also the longest one, which is as wide as its column."""
    print_lines([TextLine("reserved for it", "pods: node-0"), TextLine("queue", "default")])
    assert capsys.readouterr().out == "reserved for it pods: node-0\nqueue          default\n"
