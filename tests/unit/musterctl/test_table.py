"""Tables of the command line are aligned, and no line of them is broken or cut."""

from types import SimpleNamespace

import pytest

from musterctl.output import table as tables
from musterctl.output.table import PrintedTable, drawn


def test_columns_are_aligned() -> None:
    """Numbers to the right, and what looks like markup is text."""
    rows = [["NAME", "PODS", "REASON"], ["[b]a", "12", ""], ["b", "", "it\nwaits"]]
    assert drawn(rows, right=(1,)) == ["NAME  PODS  REASON", "[b]a    12", "b           it waits"]


def test_a_long_line_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal is."""
    monkeypatch.setenv("COLUMNS", "20")
    long = "word " * 500 + "end"
    assert drawn([["a", long], ["b", "c"]]) == [f"a  {long}", "b  c"]


def test_later_rows_stand_below_the_first_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """As a watch prints them; headings come once."""
    table = PrintedTable(["NAME", "STATE"])
    table.show([["a-long-name", "Waiting"]])
    table.show([["b", "Running"]])
    assert capsys.readouterr().out.splitlines() == [
        "NAME          STATE",
        "a-long-name   Waiting",
        "b             Running",
    ]


def test_on_a_narrow_terminal_the_last_columns_stand_below_their_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their titles; empty ones are left out, and a watch goes on like that."""
    monkeypatch.setattr(tables, "console", lambda: SimpleNamespace(width=22))
    table = PrintedTable(["NAME", "STATE", "NODES", "REASON"])
    table.show([["a-long-name", "Waiting", "-", "no room"], ["b", "Running", "node-0", ""]])
    table.show([["c", "Running", "node-1", ""]])
    assert capsys.readouterr().out.splitlines() == [
        "NAME          STATE",
        "a-long-name   Waiting",
        "    reason: no room",
        "b             Running",
        "    nodes: node-0",
        "c             Running",
        "    nodes: node-1",
    ]
