"""The command line of the controller: every flag, and what it is without it."""

import pytest

from controller.options import Options, parse

DEFAULTS = Options(
    kubeconfig="",
    status_host="127.0.0.1",
    status_port=8082,
    workers=3,
    lease_namespace="muster-system",
    lease_name="muster-controller",
    lease_duration_s=15.0,
    log_level="info",
)


def test_every_default() -> None:
    """Nothing has to be given."""
    assert parse([]) == DEFAULTS


def test_every_flag() -> None:
    """Each flag sets the field of its name."""
    flags = ["--kubeconfig=k", "--status-host=::", "--status-port=1", "--workers=8", "--lease-namespace=ns"]
    flags += ["--lease-name=l", "--lease-duration=2.5", "--log-level=debug"]
    assert parse(flags) == Options(
        kubeconfig="k",
        status_host="::",
        status_port=1,
        workers=8,
        lease_namespace="ns",
        lease_name="l",
        lease_duration_s=2.5,
        log_level="debug",
    )


@pytest.mark.parametrize("flag", ["--workers=0", "--workers=x", "--log-level=loud", "--nonsense"])
def test_what_cannot_be_used(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends the process with code 2 and says which flag is wrong."""
    with pytest.raises(SystemExit) as ended:
        parse([flag])
    assert ended.value.code == 2
    assert flag.partition("=")[0] in capsys.readouterr().err
