"""The controller's process starts, leads and ends its parts in order, and its exit code says why it ended."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from certs.authority import Authority
from controller import main
from controller.app import Controller
from controller.main import LOST_LEASE, ControllerProcess
from controller.settings import ControllerOptions, ControllerSettings
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.errors import ConfigurationError
from muster.process import memory

PARTS = ("status", "keeper", "reports", "controller", "elector")
CALLS = ("start", "stop", "lead", "make_first")


class World:
    """A process whose parts only note their calls; `elects` happens when the elector starts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, **settings: Any) -> None:
        self.client = Client(ClientConfig("http://127.0.0.1:1"))
        given = ControllerSettings(status_port=0, lease_duration_s=30.0, **settings)
        options = ControllerOptions(kubeconfig="", status_host="127.0.0.1", report_host="127.0.0.1", settings=given)
        self.process = ControllerProcess(self.client, options, [])
        self.calls: list[str] = []
        self.may_act: list[Callable[[], bool]] = []
        self.handlers: dict[int, Any] = {}
        self.elects: Callable[[], None] = lambda: self.handlers[signal.SIGTERM](signal.SIGTERM, None)
        self.folder = folder
        for part in PARTS:
            for call in CALLS:
                if hasattr(self.part(part), call):
                    monkeypatch.setattr(self.part(part), call, self._noted(f"{part} {call}"))
        monkeypatch.setattr(self.part("controller"), "wait_synced", lambda _: True)
        monkeypatch.setattr(signal, "signal", self.handlers.__setitem__)
        monkeypatch.setattr(memory, "freeze", lambda: 0)
        loop = SimpleNamespace(call_soon_threadsafe=lambda _: self.calls.append("loop"))
        monkeypatch.setattr(main, "background_loop", lambda: loop)

    def part(self, name: str) -> Any:
        """A part of the process, None if it has none."""
        return getattr(self.process, f"_{name}")

    def _noted(self, call: str) -> Callable[..., None]:
        def note(*may_act: Callable[[], bool]) -> None:
            self.calls.append(call)
            self.may_act += may_act
            if call == "elector start":
                self.elects()

        return note


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """A process with every part."""
    Authority.create("ca").issue("reports", server=True).save(tmp_path)
    files = {f"report_{kind}_file": str(tmp_path / f"tls.{end}") for kind, end in (("cert", "crt"), ("key", "key"))}
    one = World(
        monkeypatch, tmp_path, cert_secret="s", cert_dns_name=("w",), report_port=1, report_url="https://r",  # noqa: S106 - its name
        report_ca_file=str(tmp_path / "tls.crt"), **files,
    )  # fmt: skip
    yield one
    one.client.close()


STARTED = ["loop", "status start", "keeper start", "reports start", "controller start", "keeper make_first"]
ENDED = ["keeper stop", "controller stop", "elector stop", "status stop", "reports stop"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_leads_until_it_is_told_to_end(world: World, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Parts act while the elector says so; those that serve end last."""

    def elects() -> None:
        world.part("elector")._on_started()
        world.handlers[number](number, None)

    world.elects = elects
    assert world.process.run() == 0
    assert world.calls == [*STARTED, "elector start", "keeper lead", "controller lead", *ENDED]
    for leading in (False, True):
        monkeypatch.setattr(type(world.part("elector")), "leading", leading)
        assert [may_act() for may_act in world.may_act] == [leading, leading]


def test_it_ends_at_once_when_it_loses_the_lease(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is stopped in order: another process may lead already."""

    def ends(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", ends)
    world.elects = lambda: world.part("elector")._on_stopped()
    with pytest.raises(SystemExit) as ended, capture_logs() as logs:
        world.process.run()
    assert (ended.value.code, LOST_LEASE) == (1, 1)
    assert world.calls == [*STARTED, "elector start"]
    assert logs[-1]["log_level"] == "error"


def test_it_stands_for_election_when_its_caches_are_filled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice a minute it says what it waits for."""
    waits = iter([False] * 60)
    monkeypatch.setattr(world.part("controller"), "wait_synced", lambda seconds: next(waits, seconds == 1.0))
    with capture_logs() as logs:
        assert world.process.run() == 0
    assert [each["event"] for each in logs if each["log_level"] == "warning"] == [
        "still waiting for the API server"
    ] * 2
    assert world.calls == [*STARTED, "elector start", *ENDED]


def test_it_ends_while_its_caches_are_not_filled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no candidate then."""

    def waits(_: float) -> bool:
        world.handlers[signal.SIGTERM](signal.SIGTERM, None)
        return False

    monkeypatch.setattr(world.part("controller"), "wait_synced", waits)
    assert world.process.run() == 0
    assert world.calls == [*STARTED, *ENDED]


def test_its_parts_have_what_its_settings_say(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease is renewed in time; without a Secret and a port there are no keeper and no server of reports."""
    elector = world.part("elector")
    assert (elector._renew_deadline_s, elector._retry_period_s, elector._lease_duration_s) == (20.0, 4.0, 30.0)
    assert elector._identity.startswith(f"{socket.gethostname()}_")
    assert [each.name for each in world.part("controller").train_jobs._framework.plugins][-1:] == ["TrainerReports"]
    assert world.part("controller").train_jobs._authorities.pem().startswith("-----BEGIN")
    bare = World(monkeypatch, world.folder, native_pod_groups=False, train_jobs_as="JobSet", workers=5)
    bare.client.close()
    assert (bare.part("keeper"), bare.part("reports")) == (None, None)
    assert bare.part("controller").train_jobs._authorities is None
    assert len(bare.part("controller").jobs.worker._threads) == 5
    assert "native" in {worker.name for worker in world.part("controller").workers}
    assert "native" not in {worker.name for worker in bare.part("controller").workers}
    assert bare.process.run() == 0
    assert bare.calls == ["loop", "status start", "controller start", "elector start",
                          "controller stop", "elector stop", "status stop"]  # fmt: skip


def test_it_runs_with_what_it_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its exit code is that of its process."""
    given: list[Any] = []

    def process(*arguments: Any) -> SimpleNamespace:
        given.extend(arguments)
        return SimpleNamespace(run=lambda: 7)

    folder = tmp_path / "shipped"
    folder.mkdir()
    (folder / "q.yaml").write_text("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n")
    file = tmp_path / "settings.yaml"
    file.write_text(f"apiVersion: config.muster.dev/v1alpha1\nkind: ControllerConfiguration\nshipped: {folder}\n")
    monkeypatch.setattr(main, "configure", lambda *_: None)
    monkeypatch.setattr(main, "ControllerProcess", process)
    monkeypatch.setattr(Client, "load", lambda *arguments, **more: (arguments, more))
    assert main.main([f"--settings={file}", "--kubeconfig=k"]) == 7
    client, options, shipped, trusted = given
    assert client == (("k",), {"user_agent": "muster-controller", "connections": 48})
    assert options.settings.shipped == str(folder)
    assert ([each["metadata"]["name"] for each in shipped], [*trusted]) == (["q"], [])


@pytest.mark.parametrize("wrong", ["kubeconfig", "shipped"])
def test_what_it_cannot_start_with_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str) -> None:
    """In one line, and with a code of its own."""

    def load(*_: object, **__: object) -> None:
        raise ConfigurationError("there is no kubeconfig")

    file = tmp_path / "settings.yaml"
    head = "apiVersion: config.muster.dev/v1alpha1\nkind: ControllerConfiguration\n"
    file.write_text(f"{head}shipped: {tmp_path}/none\n")
    monkeypatch.setattr(main, "configure", lambda *_: None)
    monkeypatch.setattr(Client, "load", load if wrong == "kubeconfig" else lambda *_, **__: None)
    with capture_logs() as logs:
        assert main.main([f"--settings={file}"]) == 2
    why = {"kubeconfig": "there is no kubeconfig", "shipped": "none is not a folder"}[wrong]
    assert [each["event"] for each in logs if why in each.get("why", "")] == ["cannot start"]


def test_the_controller_is_ready_when_all_of_its_caches_are(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of kinds that plugins watch too; each cache is started and waited for."""
    monkeypatch.undo()
    made = Controller(world.client, 1, target="JobSet")
    started: list[object] = []
    for reflector in made.reflectors.values():
        monkeypatch.setattr(reflector, "start", partial(started.append, reflector))
    monkeypatch.setattr(made.train_jobs.watched, "start", partial(started.append, "watched"))
    monkeypatch.setattr(made._recorder, "start", partial(started.append, "recorder"))
    monkeypatch.setattr(made.queues.offers.reflector, "start", partial(started.append, "offers"))
    made.start()
    assert started == ["recorder", *made.reflectors.values(), "watched", "offers"]
    assert "kinds that plugins watch" in str(made.not_ready())
    monkeypatch.setattr(type(made.train_jobs.watched), "synced", True)
    assert "kinds that plugins watch" not in str(made.not_ready())
    last = [*made.reflectors.values()][-1]
    for reflector in made.reflectors.values():
        assert not made.wait_synced(0.0)
        assert made.not_ready()
        reflector.first.set()
    assert last.synced
    assert made.wait_synced(0.0)
    assert made.not_ready() is None
    monkeypatch.setattr(last, "wait_synced", lambda seconds: 4.0 < seconds <= 5.0)
    assert made.wait_synced(5.0)
