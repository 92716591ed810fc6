"""The page's process: what the chart gives it are arguments that it has, and what is wrong with them ends it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.chart import CHART
from web import main as process
from web.serving import ForAll

FILES = ("--cert-file=/tls.crt", "--key-file=/tls.key")


def test_arguments_of_the_chart_are_known() -> None:
    """Values of templates are put in by Helm: a number stands here for each."""
    text = (CHART / "templates" / "web.yaml").read_text(encoding="utf-8")
    [args] = re.findall(r"command: \[python, -m, web\]\n +args:\n(.*?)\n +\{\{- include", text, re.DOTALL)
    flags = re.findall(r"- (--[\w-]+)(=?)", args)
    assert len(flags) > 6
    known = process.parser().parse_args([f"{flag}=1" if value else flag for flag, value in flags])
    assert (known.port, known.status_port, known.forwarded_tokens) == (1, 1, True)


def test_the_arguments_and_the_history_reach_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The store is named in the environment, as it may have a password in it."""
    served: list[ForAll] = []
    keep: Callable[[object, ForAll], None] = lambda _, how: served.append(how)  # noqa: E731 # one line
    monkeypatch.setattr(process, "load_config", lambda _: None)
    monkeypatch.setattr(process, "serve_for_all", keep)
    monkeypatch.setattr(process, "configure", lambda _: None)
    monkeypatch.setenv("MUSTER_HISTORY", f"sqlite:///{tmp_path}/history.db")
    assert process.main([*FILES, "--host=10.0.0.1", "--status-port=8401"]) == 0
    monkeypatch.delenv("MUSTER_HISTORY")
    assert process.main([*FILES, "--forwarded-tokens"]) == 0
    first, second = served
    assert (first.host, first.port, first.status_port, first.forwarded_tokens) == ("10.0.0.1", 8400, 8401, False)
    assert (first.history is None, second.history, second.forwarded_tokens) == (False, None, True)
    assert (first.cert_file, first.key_file) == (Path("/tls.crt"), Path("/tls.key"))


def test_a_cluster_that_cannot_be_found_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With exit code 2 and a sentence in the log, as the other processes end."""
    monkeypatch.setattr(process, "configure", lambda _: None)
    assert process.main([*FILES, f"--kubeconfig={tmp_path}/none"]) == 2
    with pytest.raises(SystemExit):
        process.main([])
