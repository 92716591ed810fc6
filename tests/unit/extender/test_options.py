"""The command line of the extender: every flag, and what is wrong with its configuration."""

import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
from prometheus_client import Counter
from structlog.testing import capture_logs

from extender.app import ExtenderVerbs
from extender.barrier import OUTCOMES
from extender.configfile import RELOADS
from extender.evictions import EVICTED
from extender.main import main
from extender.notices import NOTICES
from extender.planner.timing import Timing
from extender.repairs import REPAIRS
from extender.settings import ExtenderOptions, ExtenderSettings, parse
from muster.process.settings import text_of


def test_every_default() -> None:
    """Nothing has to be given; the Lease's holder is looked for under this host's name."""
    assert parse([]) == ExtenderOptions(
        kubeconfig="", host="127.0.0.1", status_host="127.0.0.1", identity_prefix=f"{os.uname().nodename}_",
        settings=ExtenderSettings(),
    )  # fmt: skip


def test_every_flag() -> None:
    """Each flag sets the field of its name."""
    assert parse(["--kubeconfig=k", "--host=127.0.0.2", "--status-host=::", "--identity-prefix=a_"]) == ExtenderOptions(
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


class Wired:
    """In place of the parts of the process, none of which does anything."""

    verbs: ClassVar[Any] = ExtenderVerbs(*[lambda _: None] * 4)  # type: ignore[arg-type,list-item]
    pages: ClassVar[Any] = dict
    start = let_go = stop = pages


@pytest.mark.parametrize(("error", "code", "events"), [(None, 0, []), (OSError("in use"), 1, ["cannot serve"])])
def test_the_exit_code_says_whether_it_could_serve(
    monkeypatch: pytest.MonkeyPatch, error: OSError | None, code: int, events: list[str]
) -> None:
    """Another process may have the port."""

    def run(*_: object, **served: object) -> None:
        assert (served["host"], served["port"], served["tls"]) == ("127.0.0.1", ExtenderSettings().port, None)
        if error:
            raise error

    monkeypatch.setattr("extender.main.logs.configure", lambda *_: None)  # it would take the log from this test
    monkeypatch.setattr("extender.main.Extender", lambda *_: Wired())
    monkeypatch.setattr("extender.main.serve.run", run)
    with capture_logs() as lines:
        assert main([]) == code
    assert [line["event"] for line in lines] == events


COUNTERS: dict[Counter, list[tuple[str, ...]]] = {
    EVICTED: [
        (action,) for action in ("recall", "reclaim", "preempt", "consolidate", "continued", "repair", "below-minimum")
    ],
    REPAIRS: [(policy, kind) for policy in ("replace", "restart") for kind in ("suspect", "not-ready", "gone")],
    NOTICES: [("answered",), ("silent",), ("withdrawn",)],
    RELOADS: [("used",), ("refused",)],
    OUTCOMES: [("released",), ("timed_out",), ("cancelled",)],
}


@pytest.mark.parametrize(("counter", "labels"), COUNTERS.items(), ids=lambda each: getattr(each, "_name", ""))
def test_counters_begin_at_zero(counter: Counter, labels: list[tuple[str, ...]]) -> None:
    """A sample that comes with the first event shows no increase, and no alert fires."""
    assert {*labels} <= {*counter._metrics}


def test_a_pair_of_a_pool_follows_its_own_lease() -> None:
    """Or the one that is named."""
    assert ExtenderSettings().lease == "muster-scheduler"
    assert ExtenderSettings(node_pool="b").lease == "muster-scheduler-b"
    assert ExtenderSettings(node_pool="b", lease_name="mine").lease == "mine"


@pytest.mark.parametrize(("settings", "problem"), [
    ({"node_pool": "b"}, ""),
    ({"node_pool": "No Pool"}, "nodePool: 'No Pool' is not a node pool name"),
    ({"suspect_conditions": ("XidError=True", "-KernelDeadlock=True", "A=Unknown")}, ""),
    ({"suspect_conditions": ("XidError",)}, "suspectConditions: 'XidError' must be a type and a status"),
    ({"suspect_conditions": ("XidError=true",)}, "suspectConditions: 'XidError=true'"),
    ({"cert_file": "c", "key_file": "k", "client_ca_file": "a"}, ""),
    ({"key_file": "k"}, "certFile: certFile, keyFile, clientCaFile are required together for TLS"),
])  # fmt: skip
def test_settings_that_cannot_be_used_are_named(settings: dict[str, Any], problem: str) -> None:
    """By the field as the file has it."""
    assert [each[: len(problem)] for each in [*ExtenderSettings(**settings).problems()]] == [problem] * bool(problem)


def test_cycles_have_the_times_of_the_settings() -> None:
    """Each by its own."""
    both: dict[str, Any] = {"staleness_grace_s": 2.0, "growth_delay_s": 3.0, "longest_notice_s": 4.0, "fault_stop": 0.5}
    both["node_fault_grace_s"] = 5.0
    assert ExtenderSettings(recovery_timeout_s=1.0, **both).timing == Timing(recovery_s=1.0, **both)
