"""A PostgreSQL of one test: a folder of its own, on loopback, and as another user where the test runs as root."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

_START_S = 60.0
_NOBODY = 65534


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of an empty database; skips, and says how to install it, where the programs are not there."""
    initdb, server = shutil.which("initdb"), shutil.which("postgres")
    if not initdb or not server:
        pytest.skip("no PostgreSQL here: apt-get install postgresql, and put its bin folder on the PATH")
    as_other: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if as_other:
            os.chown(home, _NOBODY, _NOBODY)
        data, port = home / "data", _free_port()
        begin = [initdb, "--pgdata", str(data), "--username=muster", "--auth=trust", "--no-sync"]
        subprocess.run(begin, check=True, capture_output=True, cwd=home, **as_other)
        flags = ["-c", f"unix_socket_directories={home}", "-c", "listen_addresses=127.0.0.1", "-p", str(port), "-F"]
        log = (home / "log").open("wb")
        running = subprocess.Popen([server, "-D", str(data), *flags], stdout=log, stderr=log, cwd=home, **as_other)
        try:
            url = f"postgresql://muster@127.0.0.1:{port}/postgres"
            _wait(url, running, home / "log")
            yield url
        finally:
            running.send_signal(signal.SIGINT)  # a fast shutdown: recorders are still connected
            running.wait()
            log.close()


def _wait(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            if running.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"PostgreSQL does not start: {log.read_text()}")
            time.sleep(0.1)
        else:
            return


def _free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
