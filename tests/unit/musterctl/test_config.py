"""`muster config check` and `print-defaults`."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from extender.cycle import report_of
from extender.framework.config import SchedulerConfig, parse
from musterctl.app import main


def test_the_defaults_are_a_file_that_says_what_runs_without_one() -> None:
    """It can be edited and used."""
    said = CliRunner().invoke(main, ["config", "print-defaults"])
    assert said.exit_code == 0
    assert parse(said.output) == SchedulerConfig()
    assert report_of(said.output).errors == []


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("actions: alocate", 1, "error: actions: there is no action 'alocate'; valid actions: allocate,"),
        ("tiers: [{plugins: [{name: usage}]}]", 0, "tiers[0].plugins[0]: usage: no effect: no plugin of Muster reads"),
        ("tiers: [", 1, "error: this is no YAML"),
    ],
)
def test_a_file_is_checked(tmp_path: Path, text: str, code: int, words: str) -> None:
    """With what is wrong, or what has no effect; also from standard input."""
    file = tmp_path / "conf"
    file.write_text(text)
    for argument, stdin in ((str(file), None), ("-", text)):
        said = CliRunner().invoke(main, ["config", "check", argument], input=stdin)
        assert said.exit_code == code
        assert words in said.output


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Says so."""
    file = tmp_path / "conf"
    file.write_bytes(b"\xff")
    said = CliRunner().invoke(main, ["config", "check", str(file)])
    assert said.exit_code == 1
    assert "it is no UTF-8 text" in said.output
