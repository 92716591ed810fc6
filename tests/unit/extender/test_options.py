"""The command line of the extender: every flag, what it is without it, and what is wrong with its configuration."""

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from extender.main import main
from extender.options import Options, parse

DEFAULTS = Options(
    kubeconfig="",
    host="127.0.0.1",
    port=9444,
    status_host="127.0.0.1",
    status_port=9445,
    lease_namespace="muster-system",
    lease_name="muster-scheduler",
    identity_prefix=f"{os.uname().nodename}_",
    barrier_timeout_s=10.0,
    recovery_timeout_s=30.0,
    staleness_grace_s=60.0,
    growth_delay_s=1.0,
    config=None,
    traces_endpoint="",
    log_level="info",
)


def test_every_default() -> None:
    """Nothing has to be given; the Lease's holder is looked for under this host's name."""
    assert parse([]) == DEFAULTS


def test_every_flag() -> None:
    """Each flag sets the field of its name; a negative grace is a number, not a flag."""
    flags = [
        "--kubeconfig=k",
        "--host=127.0.0.2",
        "--port=1",
        "--status-host=::",
        "--status-port=2",
        "--lease-namespace=ns",
        "--lease-name=l",
    ]
    flags += ["--identity-prefix=a_", "--barrier-timeout=1.5", "--recovery-timeout=2", "--staleness-grace", "-1"]
    flags += ["--growth-delay=3", "--config=actions.yaml", "--traces-endpoint=t", "--log-level=debug"]
    assert parse(flags) == Options(
        kubeconfig="k",
        host="127.0.0.2",
        port=1,
        status_host="::",
        status_port=2,
        lease_namespace="ns",
        lease_name="l",
        identity_prefix="a_",
        barrier_timeout_s=1.5,
        recovery_timeout_s=2.0,
        staleness_grace_s=-1.0,
        growth_delay_s=3.0,
        config=Path("actions.yaml"),
        traces_endpoint="t",
        log_level="debug",
    )


@pytest.mark.parametrize("flag", ["--port=x", "--barrier-timeout=soon", "--log-level=loud", "--nonsense"])
def test_what_cannot_be_read(flag: str) -> None:
    """It ends the process with code 2."""
    with pytest.raises(SystemExit) as ended:
        parse([flag])
    assert ended.value.code == 2


@pytest.mark.parametrize("text", [None, "actions: allocate, alocate", "action: allocate"])
def test_a_configuration_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    """The log names the file and says what is wrong; the exit code is 2."""
    monkeypatch.setattr("extender.main.logs.configure", lambda *_: None)  # it would take the log from this test
    file = tmp_path / "actions.yaml"
    if text is not None:
        file.write_text(text)
    with capture_logs() as lines:
        assert main([f"--config={file}"]) == 2
    assert [line["event"] for line in lines] == ["cannot start"]
    assert str(file) in lines[0]["why"]
