"""The command line of the webhook: every flag, what it is without it, and what must be given."""

from pathlib import Path

import pytest

from webhook.options import Options, parse

REQUIRED = ["--port=9443", "--cert-file=tls.crt", "--key-file=tls.key", "--status-port=8080"]


def test_every_default() -> None:
    """What must be given, and nothing else."""
    assert parse(REQUIRED) == Options(
        kubeconfig="",
        host="127.0.0.1",
        port=9443,
        cert_file="tls.crt",
        key_file="tls.key",
        client_ca_file="",
        status_port=8080,
        mark_pods=False,
        train_jobs_as="Job",
        config=None,
        traces_endpoint="",
        log_level="info",
    )


def test_every_flag() -> None:
    """Each flag sets the field of its name."""
    flags = [
        "--kubeconfig=k",
        "--client-ca-file=ca.crt",
        "--host=::",
        "--mark-pods",
        "--train-jobs-as=JobSet",
        "--config=groups.yaml",
        "--traces-endpoint=t",
        "--log-level=debug",
    ]
    assert parse([*REQUIRED, *flags]) == Options(
        kubeconfig="k",
        host="::",
        port=9443,
        cert_file="tls.crt",
        key_file="tls.key",
        client_ca_file="ca.crt",
        status_port=8080,
        mark_pods=True,
        train_jobs_as="JobSet",
        config=Path("groups.yaml"),
        traces_endpoint="t",
        log_level="debug",
    )


@pytest.mark.parametrize("missing", REQUIRED)
def test_what_must_be_given(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without it the process ends with code 2 and says what is missing."""
    with pytest.raises(SystemExit) as ended:
        parse([flag for flag in REQUIRED if flag != missing])
    assert ended.value.code == 2
    assert missing.partition("=")[0] in capsys.readouterr().err
