"""The command line of the extender: every flag, and what is wrong with its configuration."""

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from extender.main import main
from extender.settings import ExtenderSettings, Options, parse
from muster.process.settings import text_of


def test_every_default() -> None:
    """Nothing has to be given; the Lease's holder is looked for under this host's name."""
    assert parse([]) == Options(
        kubeconfig="",
        host="127.0.0.1",
        status_host="127.0.0.1",
        identity_prefix=f"{os.uname().nodename}_",
        settings=ExtenderSettings(),
    )


def test_every_flag() -> None:
    """Each flag sets the field of its name."""
    assert parse(["--kubeconfig=k", "--host=127.0.0.2", "--status-host=::", "--identity-prefix=a_"]) == Options(
        kubeconfig="k", host="127.0.0.2", status_host="::", identity_prefix="a_", settings=ExtenderSettings()
    )


@pytest.mark.parametrize("text", [None, "actions: allocate, alocate", "action: allocate"])
def test_a_configuration_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    """The log names the file and says what is wrong; the exit code is 2."""
    monkeypatch.setattr("extender.main.logs.configure", lambda *_: None)  # it would take the log from this test
    file = tmp_path / "actions.yaml"
    settings = tmp_path / "settings.yaml"
    settings.write_text(text_of(ExtenderSettings(config=str(file)), {}))
    if text is not None:
        file.write_text(text)
    with capture_logs() as lines:
        assert main([f"--settings={settings}"]) == 2
    assert [line["event"] for line in lines] == ["cannot start"]
    assert str(file) in lines[0]["why"]
