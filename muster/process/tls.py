"""TLS for a server whose certificate, key and client authorities are in files that may change while the server runs.

Clients must use TLS 1.2 or later. Clients that must present a certificate need TLS 1.3, because they could resume a
session of TLS 1.2 after their authority was removed.
"""

import os
import ssl
import threading
from pathlib import Path
from typing import NamedTuple

import structlog
from prometheus_client import Gauge

log = structlog.get_logger()


class FileError(ValueError):
    """Raised if a file cannot be used; the message names the file and the reason, and shows no part of a key."""


class Files(NamedTuple):
    """Files (PEM) with a server's certificate and key and, if clients need a certificate, with their authorities."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def stamp(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Return a value that changes if a file or its content changes; it contains None for a missing file."""
        return tuple(_stamp(file) for file in self if file)


class _Shown(NamedTuple):
    """The TLS context for new connections, and the expiry time of its certificate in seconds since the epoch."""

    context: ssl.SSLContext
    ends_s: float


class ServerTLS:
    """TLS of a server, which follows changes of the certificate's files.

    The server uses `context`. Each handshake checks the files, and continues with a context for their current content.
    If the files are unusable, for example because only one of them is written yet, the last usable content stays in
    use. Handshakes fail until the files have had usable content.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._stamp: tuple[tuple[int, int, int] | None, ...] = ()
        self._shown: _Shown | None = None
        self.context = _context(requires_certificates=files.client_ca is not None)
        self.context.sni_callback = self._take_up

    def read_files(self) -> None:
        """Read the files; raises FileError for unusable files."""
        self._stamp, self._shown = self._files.stamp(), _load_context(self._files)

    def ends_s(self) -> float:
        """Return the expiry time of the certificate for new connections, in seconds since the epoch.

        Returns 0 if the server has no certificate.
        """
        shown = self._now()
        return shown.ends_s if shown else 0.0

    def _take_up(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> int | None:
        shown = self._now()
        if shown is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = shown.context
        return None

    def _now(self) -> _Shown | None:
        with self._lock:
            stamp = self._files.stamp()
            if stamp != self._stamp:
                self._stamp = stamp
                try:
                    self._shown = _load_context(self._files)
                except FileError as error:
                    log.warning(
                        "the new certificate is not usable yet", the_old_one_stays=bool(self._shown), error=str(error)
                    )
                else:
                    log.info("certificate taken up", ends_s=self._shown.ends_s)
            return self._shown


def send_end(tls: ServerTLS) -> None:
    """Show the certificate's expiry time for clients in /metrics; call this once per process."""
    Gauge(
        "muster_server_certificate_expiry_timestamp_seconds",
        "Expiry time of the certificate that clients see, in seconds since the epoch.",
    ).set_function(tls.ends_s)


def _context(*, requires_certificates: bool) -> ssl.SSLContext:
    """Return a TLS context without a certificate; with `requires_certificates`, clients must present a certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if requires_certificates else ssl.TLSVersion.TLSv1_2
    if requires_certificates:
        context.num_tickets = 0
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load_context(files: Files) -> _Shown:
    context = _context(requires_certificates=files.client_ca is not None)
    try:
        # without a password, OpenSSL would prompt for the password of an encrypted key
        context.load_cert_chain(files.cert, files.key, password="")
        from cryptography import x509  # noqa: PLC0415 - 10 MiB, which a server of plain HTTP does not need

        ends_s = x509.load_pem_x509_certificate(files.cert.read_bytes()).not_valid_after_utc.timestamp()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        why = f"{files.cert} and {files.key} are not a certificate and its key (PEM, not encrypted): {error}"
        raise FileError(why) from error
    if files.client_ca:
        try:
            context.load_verify_locations(cafile=files.client_ca)
        except OSError as error:
            raise FileError(f"{files.client_ca}: the file contains no certificate (PEM): {error}") from error
    return _Shown(context, ends_s)


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        stat = os.stat(file)  # noqa: PTH116 - a third of the time of Path.stat, at each handshake
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
