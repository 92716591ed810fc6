"""The process of the recorder: it records while it has its lease, and ends as it is told."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from kubeconfigs import kubeconfig
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from history import main
from history.model import MEMORY
from history.settings import HistorySettings, RecorderOptions
from history.store import HistoryStore
from muster.kube.client import Client
from muster.process.settings import API_VERSION

OPTIONS = RecorderOptions(
    kubeconfig="", status_host="127.0.0.1", settings=HistorySettings(status_port=0, publish=False)
)
HEAD = f"apiVersion: {API_VERSION}\nkind: HistoryConfiguration\n"


class Elector:
    """Calls what the test says, as if the lease was won or lost, when it is started."""

    does: Callable[["Elector"], None]

    def __init__(self, *arguments: Any, on_started: Any, on_stopped: Any, **durations: float) -> None:
        self.of, self.durations = arguments[1:], durations
        self.won, self.lost = on_started, on_stopped
        self.stopped = False

    def start(self) -> None:
        """Let it happen."""
        self.does()

    def stop(self) -> None:
        """Note it."""
        self.stopped = True


class Recorder:
    """Records until it is stopped; what it `raises` is a defect."""

    raises: Exception | None = None

    def __init__(self, *_: Any, **__: Any) -> None:
        self.began, self.ended = threading.Event(), threading.Event()

    def run(self) -> None:
        """Until the end."""
        self.began.set()
        if self.raises:
            raise self.raises
        self.ended.wait(10)

    def stop(self) -> None:
        """End it."""
        self.ended.set()

    def not_ready(self) -> str | None:
        """It is."""
        return None


class Queues:
    """None, which are followed."""

    resources = None

    def __init__(self, _: Any) -> None:
        self.start = self.stop = lambda: None


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[main.RecorderProcess]:
    """A process whose lease and recorder are the test's."""
    exits: list[int] = []
    monkeypatch.setattr(main, "REGISTRY", CollectorRegistry())
    monkeypatch.setattr(main, "BudgetedQueues", Queues)
    monkeypatch.setattr(main, "UsageCounters", lambda _: CollectorRegistry())
    monkeypatch.setattr(main, "Elector", Elector)
    monkeypatch.setattr(main, "HistoryRecorder", Recorder)
    monkeypatch.setattr(Recorder, "raises", None)

    def leave(code: int) -> None:
        exits.append(code)
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield main.RecorderProcess(cast("Client", None), HistoryStore.for_writing(MEMORY), OPTIONS)
    for number, handler in before:
        signal.signal(number, handler)


def does(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[Elector], object]) -> None:
    """What happens when the process stands for election."""

    def happen(elector: Elector) -> None:
        for step in steps:
            step(elector)

    monkeypatch.setattr(Elector, "does", happen, raising=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("leads", [True, False])
def test_it_ends_when_told(made: Any, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, *, leads: bool) -> None:
    """Recording or not; what is open is closed, and the lease given up."""
    steps: list[Callable[[Elector], object]] = [lambda elector: elector.won()] if leads else []
    does(monkeypatch, *steps, lambda _: os.kill(os.getpid(), number))
    assert made.run() == 0
    assert made._recorder.began.is_set() is leads
    assert made._recorder.ended.is_set()
    assert made._elector.stopped
    assert not made._thread.is_alive()
    with pytest.raises(Exception, match=r"closed|no such table"):
        made._store.note("x")


def test_a_lost_lease_ends_it_at_once(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another recorder may write from then on."""
    does(monkeypatch, lambda elector: elector.won(), lambda elector: elector.lost())
    with pytest.raises(SystemExit, match="1"):
        made.run()
    made._recorder.stop()


def test_a_defect_ends_it(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh process reads on from where this one had written."""
    monkeypatch.setattr(Recorder, "raises", ValueError("broken"))
    with capture_logs() as lines, pytest.raises(SystemExit, match="1"):
        made._record()
    assert [line["event"] for line in lines] == ["the recorder failed"]


def test_the_lease_has_its_times(made: Any) -> None:
    """A holder gives up before others may take over, and tries several times until then."""
    assert made._elector.of[:2] == ("muster-system", "muster-history")
    assert made._elector.durations == {"lease_duration_s": 15.0, "renew_deadline_s": 10.0, "retry_period_s": 2.0}


def test_a_process_that_cannot_start_says_why(made: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It ends with code 2; one that keeps the history in memory warns of that."""
    del made
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(main, "configure", lambda *words: told.append(words))
    config = tmp_path / "config.yaml"
    config.write_text(f"{HEAD}databaseFile: {tmp_path}/none\nlogLevel: error\n")
    with capture_logs() as lines:
        assert main.main([f"--settings={config}", f"--kubeconfig={tmp_path}/none"]) == 2
    assert told == [("history", "error")]
    assert [(line["event"], "No such file" in line["why"]) for line in lines] == [("cannot start", True)]
    does(monkeypatch, lambda _: os.kill(os.getpid(), signal.SIGTERM))
    config.write_text(f"{HEAD}statusPort: 0\n")
    file = kubeconfig(tmp_path, {"token": "t"}, server="http://127.0.0.1:1")
    with capture_logs() as lines:
        assert main.main([f"--settings={config}", f"--kubeconfig={file}"]) == 0
    assert [line["event"] for line in lines] == [
        "the history is stored only in memory and is lost when this process ends: set `database` to keep it",
        "store opened",
        "status server started",
        "ending",
    ]
