"""A small app served over TLS in a process of its own, as the webhook is, and clients of it."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from http.client import HTTPSConnection
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from certs.authority import Authority

PROGRAM = """
import json, os, sys, threading, time
from pathlib import Path
import flask, prometheus_client
from muster.process import bounds, draining, logs, prefork, serve
from muster.process.tls import Files

logs.configure("test")
for name, value in json.loads(sys.argv[4]).items():
    [module] = [each for each in (bounds, draining, serve, prefork) if hasattr(each, name)]
    setattr(module, name, value)
app = flask.Flask("test")
app.config["MAX_CONTENT_LENGTH"] = 16 * 1024 * 1024
state = {}

@app.get("/slow")
def slow():
    time.sleep(0.5)
    return "done"

@app.get("/big")
def big():
    return b"x" * 12_000_000

@app.post("/size")
def size():
    return str(len(flask.request.get_data()))

@app.get("/metrics")
def metrics():
    return prometheus_client.generate_latest()

@app.get("/")
def pids():
    return {"worker": os.getpid(), "master": os.getppid(), "thread": state["thread"].is_alive()}

@app.post("/fails")
def fails():
    raise RuntimeError("a defect")

def start():
    state["thread"] = threading.Thread(target=threading.Event().wait, daemon=True)
    state["thread"].start()

prefork.serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=2, name="test",
              files=Files(Path(sys.argv[2]), Path(sys.argv[3])), drain_s=float(sys.argv[5]), on_worker_start=start,
              on_worker_stop=lambda: print("stopped", flush=True))
"""


def wait_until(condition: Callable[[], object], what: str, deadline_s: float = 20) -> None:
    """Polls until the condition holds."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {deadline_s} s"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Served:
    """A served app, its certificate files and a client that trusts its authority."""

    def __init__(self, folder: Path, bounds: Mapping[str, float] | None = None, drain_s: float = 0.0) -> None:
        self.authority = Authority.create("test")
        self.cert, self.key = folder / "tls.crt", folder / "tls.key"
        self.rotate("first")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        arguments = [str(self.port), str(self.cert), str(self.key), json.dumps(bounds or {}), str(drain_s)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._clients = ExitStack()
        try:
            wait_until(self.answers, "the first answer")
        except BaseException:
            self.end()
            raise

    def rotate(self, common_name: str) -> None:
        """Writes a new pair: the key first, so for a moment it does not fit."""
        pair = self.authority.issue(common_name, ips=["127.0.0.1"], server=True)
        self.key.write_bytes(pair.key_pem)
        self.cert.write_bytes(pair.cert_pem)

    def connect(self) -> HTTPSConnection:
        """A new TLS connection, until `hang_up`."""
        context = ssl.create_default_context(cadata=self.authority.cert_pem.decode())
        connection = HTTPSConnection("127.0.0.1", self.port, context=context, timeout=5)
        connection.connect()
        return self._clients.enter_context(closing(connection))

    def answers(self) -> bool:
        """Whether it takes connections."""
        try:
            self.connect().close()
        except ConnectionError:
            return False
        return True

    def pids(self, connection: HTTPSConnection | None = None) -> dict[str, int]:
        """What the worker says of itself."""
        own = connection or self.connect()
        own.request("GET", "/")
        result: dict[str, int] = json.loads(own.getresponse().read())
        if connection is None:
            own.close()
        return result

    def common_name(self, connection: HTTPSConnection) -> str:
        """Whose certificate a connection saw."""
        certificate = x509.load_der_x509_certificate(connection.sock.getpeercert(binary_form=True) or b"")
        return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

    def tcp(self) -> socket.socket:
        """A new connection without a handshake, until `hang_up`."""
        return self._clients.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=5))

    def hang_up(self) -> None:
        """Closes all connections."""
        self._clients.close()

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels, or the one value with labels `name{...}`."""
        connection = self.connect()
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def end(self) -> None:
        """Kills the master and its workers if they still live."""
        self.hang_up()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
