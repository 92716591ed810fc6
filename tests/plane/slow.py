"""An API server whose every response, and every event of a watch, comes late: a proxy delays what it sends."""

import queue
import socket
import threading
import time
from contextlib import suppress
from typing import Final, Self

from replicas import accept_all

_PIECE: Final = 1 << 16


class Delayed:
    """A port before another one; what comes back is delayed by `delay_s`, which may change at any time."""

    def __init__(self, port: int, target: int) -> None:
        self.delay_s = 0.0
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", port), backlog=256)

    def __enter__(self) -> Self:
        threading.Thread(target=accept_all, args=(self._listener, self._connect), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _connect(self, asking: socket.socket) -> None:
        try:
            answering = socket.create_connection(("127.0.0.1", self._target), 5)
        except OSError:
            asking.close()
            return
        answering.settimeout(None)
        pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        works = ((self._pass, (asking, answering)), (self._read, (answering, pieces)), (_write, (pieces, asking)))
        for work, arguments in works:
            threading.Thread(target=work, args=arguments, daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_PIECE):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def _read(self, source: socket.socket, pieces: "queue.SimpleQueue[tuple[float, bytes]]") -> None:
        data = b"-"
        while data:
            try:
                data = source.recv(_PIECE)
            except OSError:
                data = b""
            pieces.put((time.monotonic() + self.delay_s, data))
        source.close()


def _write(pieces: "queue.SimpleQueue[tuple[float, bytes]]", target: socket.socket) -> None:
    with suppress(OSError):
        while True:
            due_s, data = pieces.get()
            time.sleep(max(0.0, due_s - time.monotonic()))
            if not data:
                break
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
    target.close()
