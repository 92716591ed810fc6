"""The page in the cluster, as a process with the rights that the chart gives it, and its users' requests."""

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from certs.authority import Authority
from muster.api.names import SYSTEM_NAMESPACE
from muster.kube.client import Client
from musterctl.chart import roles
from musterctl.plane import rights
from musterctl.plane.install import apply
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane


class _Stays(urllib.request.HTTPRedirectHandler):
    """Shows redirects."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


@dataclass
class PageServer:
    """A running server. `who` is a token."""

    url: str
    authority_file: Path
    process: subprocess.Popen[bytes]
    log: Path
    status_port: int

    def ask(self, path: str, token: str = "", form: dict[str, str] | None = None, **headers: str) -> tuple[int, str]:
        """Status and text of an answer."""
        given = {name.replace("_", "-"): each for name, each in headers.items()}
        given |= {"authorization": f"Bearer {token}"} if token else {}
        body = None if form is None else urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(self.url + path, body, given)  # noqa: S310 # its own server
        try:
            with self.opener.open(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    @property
    def opener(self) -> urllib.request.OpenerDirector:
        """What trusts the server's authority, and follows no redirects."""
        context = ssl.create_default_context(cafile=str(self.authority_file))
        return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _Stays)

    @contextlib.contextmanager
    def stream(self, path: str, token: str) -> Iterator[Any]:
        """An open stream, to be read line by line."""
        given = {"authorization": f"Bearer {token}"}
        request = urllib.request.Request(self.url + path, headers=given)  # noqa: S310 # its own server
        with self.opener.open(request, timeout=150) as answer:
            yield answer


@contextlib.contextmanager
def page_server(plane: Plane, folder: Path, wait_for: Callable[..., Any]) -> Iterator[PageServer]:
    """The page of a plane, with the account of the chart."""
    folder.mkdir(parents=True, exist_ok=True)
    admin = plane.client()
    apply(admin, roles.objects(SYSTEM_NAMESPACE, [roles.WEB_ACCOUNT]))
    authority = Authority.create("pages")
    ca, cert, key = folder / "ca.crt", folder / "tls.crt", folder / "tls.key"
    ca.write_bytes(authority.cert_pem)
    pair = authority.issue("muster-web", ips=["127.0.0.1"], server=True)
    cert.write_bytes(pair.cert_pem)
    key.write_bytes(pair.key_pem)
    port, status = free_ports(2, plane.state.ports.values())
    log = folder / "web.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "web", f"--port={port}"),
                *(f"--cert-file={cert}", f"--key-file={key}", f"--status-port={status}"),
                f"--kubeconfig={_kubeconfig(plane, admin, folder)}",
            ],
            stdout=out,
            stderr=out,
            env=os.environ,
        )
    try:
        server = PageServer(f"https://127.0.0.1:{port}", ca, process, log, status)

        def ready() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{status}/readyz", timeout=5) as answer:
                    return bool(answer.status == HTTPStatus.OK)
            except OSError:
                return False

        wait_for(ready, 60, "the page to be ready")
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        finally:
            process.kill()
        admin.close()


def token_of(admin: Client, namespace: str, account: str) -> str:
    """A new token of a service account."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    return str(json.loads(admin.request("POST", path, body=json.dumps(asked).encode()))["status"]["token"])


def _kubeconfig(plane: Plane, admin: Client, folder: Path) -> Path:
    config = yaml.safe_load(plane.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": rights.new_token(admin, roles.WEB_ACCOUNT.name)}
    file = folder / "web.kubeconfig"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file
