"""The extender answers kube-scheduler beside it, and neither web pages nor other machines."""

from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from app_world import JSON, ask

from extender.app import ExtenderVerbs, create_app
from extender.settings import ExtenderSettings, parse
from muster.api.kubernetes.extender import ExtenderBindingArgs, ExtenderBindingResult
from muster.process.settings import text_of
from muster.process.tls import Files

BODY = b'{"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n"}'


def post(headers: dict[str, str], *, authenticated: bool = False) -> tuple[int, list[str]]:
    """The status of a bind call with these headers, and the pods that the verb was asked about."""
    asked: list[str] = []

    async def bind(args: ExtenderBindingArgs) -> ExtenderBindingResult:
        asked.append(args.pod_name)
        return ExtenderBindingResult()

    def unused(_: object) -> Any:
        raise AssertionError("only bind is called")

    app = create_app(ExtenderVerbs(unused, unused, bind, unused), dict, authenticated=authenticated)
    return ask(app, "POST", "/bind", BODY, headers=headers, host=headers.get("host", "127.0.0.1:9444")).status, asked


SERVICE = {"host": "muster-extender.muster-system.svc"}
UNREAD = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
OTHER_KINDS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "")
"""A web page can send these to any port without being asked."""
OTHER_HOSTS = ("evil.example:9444", "192.0.2.1", "127.0.0.1.evil.example", "[", "")
"""Names that a web page made to mean 127.0.0.1, and what is none."""


@pytest.mark.parametrize(("headers", "authenticated", "status"), [
    *((JSON | {"host": host}, False, HTTPStatus.OK)
      for host in ("127.0.0.1:9444", "127.0.0.1", "localhost:9444", "[::1]:9444")),
    *(({"content-type": kind}, False, UNREAD) for kind in OTHER_KINDS),
    *((JSON | {"host": host}, False, HTTPStatus.FORBIDDEN) for host in OTHER_HOSTS),
    (JSON | {"origin": "http://127.0.0.1:9444"}, False, HTTPStatus.FORBIDDEN),
    (JSON | SERVICE, True, HTTPStatus.OK),
    (JSON | SERVICE | {"origin": "https://evil.example"}, True, HTTPStatus.FORBIDDEN),
    (SERVICE | {"content-type": "text/plain"}, True, UNREAD),
])  # fmt: skip
def test_only_calls_as_kube_scheduler_makes_them_are_answered(
    headers: dict[str, str], status: HTTPStatus, *, authenticated: bool
) -> None:
    """JSON without an Origin to a loopback address, or to any name with a client certificate."""
    assert post(headers, authenticated=authenticated) == (status, ["p"] if status == HTTPStatus.OK else [])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "muster-extender"])  # noqa: S104 - what is refused
def test_it_listens_on_loopback_only(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And says why before anything starts."""
    with pytest.raises(SystemExit) as ended:
        parse(["--host", host])
    assert ended.value.code == 2
    assert "is not a loopback address" in capsys.readouterr().err


def test_with_tls_it_listens_anywhere(tmp_path: Path) -> None:
    """As then nobody is answered without a client certificate."""
    settings = tmp_path / "settings.yaml"
    settings.write_text(text_of(ExtenderSettings(cert_file="c", key_file="k", client_ca_file="a"), {}))
    assert parse(["--host=::", f"--settings={settings}"]).settings.tls == Files(Path("c"), Path("k"), Path("a"))


@pytest.mark.parametrize("missing", ["certFile", "keyFile", "clientCaFile"])
def test_tls_without_client_certificates_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    """All three files or none."""
    settings = tmp_path / "settings.yaml"
    files = {"certFile": "c", "keyFile": "k", "clientCaFile": "a"} | {missing: ""}
    settings.write_text(text_of(ExtenderSettings(), files))
    with pytest.raises(SystemExit):
        parse([f"--settings={settings}"])
    assert f"{missing} is missing" in capsys.readouterr().err
