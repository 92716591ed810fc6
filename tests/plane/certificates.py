"""What tests of certificates share: a kubelet that mounts the Secret, a load of pods, and who looks at every moment."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from certs.authority import CertificatePair
from certs.certificate import read_bundle, write_bundle
from certs.content import Content, read
from certs.rotation import Terms, WantedCertificate
from controller.certificates import CertificateOptions, Keeper
from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.extensions import CERTIFICATE_SECRETS, WEBHOOK_CONFIGURATIONS, CertificateSecret
from muster.kube.client import Client
from muster.kube.errors import APIError, NotFound
from muster.kube.reflector import Reflector

SECRET = (names.CERTIFICATES, names.SYSTEM_NAMESPACE)
DAY_S = 86400.0
QUICK = Terms(authority_life_s=365 * DAY_S, life_s=90 * DAY_S, trust_wait_s=2, load_wait_s=3)
"""Lives as usual, and waits that a test can wait for."""


@contextmanager
def kept(client: Client, terms: Terms = QUICK, secret: str = SECRET[0], issuer: Any = "own") -> Iterator[None]:
    """Looks after the webhook's certificate, as a controller that leads."""
    wanted = WantedCertificate(name="tls", common_name="muster-webhook", names=frozenset({"127.0.0.1"}))
    options = CertificateOptions(secret=secret, issuer=issuer, wanted=(wanted,), terms=terms)
    keeper = Keeper(client, options, SECRET[1])
    keeper.start()
    keeper.lead(lambda: True)
    try:
        yield
    finally:
        keeper.stop()


def secret_of(client: Client) -> CertificateSecret | None:
    """The Secret, if it exists."""
    try:
        return client.get(CERTIFICATE_SECRETS, *SECRET)
    except NotFound:
        return None


def content_of(client: Client) -> Content:
    """What stands in it; nothing if it does not exist."""
    secret = secret_of(client)
    if secret is None:
        return Content()
    meta = secret.metadata
    return read(secret.data or {}, meta.labels, meta.annotations, ("tls",))


def bundles_of(client: Client) -> list[bytes]:
    """The caBundle of every webhook of Muster's, as it was written."""
    return [
        write_bundle(read_bundle(webhook.client_config.ca_bundle or b""))
        for kind in WEBHOOK_CONFIGURATIONS
        for configuration in client.list(kind)
        if configuration.metadata.name == names.WEBHOOKS
        for webhook in configuration.webhooks or ()
    ]


@contextmanager
def kubelet(client: Client, folder: Path, name: str, delay_s: float) -> Iterator[None]:
    """Writes the webhook's certificate to files as a kubelet does: some time after the Secret has changed, and whole.

    A Secret that is gone, or has no certificate, leaves the files as they are.
    """
    changed, ending = threading.Event(), threading.Event()
    reflector = Reflector(client, CERTIFICATE_SECRETS, namespace=SECRET[1], field_selector=f"metadata.name={SECRET[0]}")
    reflector.add_handler(lambda _old, _new: changed.set())

    def run() -> None:
        while not ending.is_set():
            if changed.wait(0.05):
                changed.clear()
                ending.wait(delay_s)
                for secret in reflector.store.list():
                    data = secret.data or {}
                    if data.get("tls.crt") and data.get("tls.key"):
                        CertificatePair(data["tls.crt"], data["tls.key"]).save(folder, name)

    thread = threading.Thread(target=run, daemon=True)
    reflector.start()
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        reflector.stop()


class Load:
    """Creates pods that ask for Muster, so many a minute; remembers what was refused, and what nobody reviewed."""

    def __init__(self, client: Client, namespace: str, per_minute: float) -> None:
        self._client, self._namespace, self._pause_s = client, namespace, 60 / per_minute
        self.created = 0
        self.failures: list[str] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """No more pods."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._ending.wait(max(0.0, due_s - time.monotonic())):
            due_s += self._pause_s
            pod: dict[str, Any] = {
                "metadata": {"generateName": "load-", "labels": {names.QUEUE: "default"}},
                "spec": {"containers": [{"name": "main", "image": "none"}]},
            }
            try:
                made = self._client.create(PODS, pod, self._namespace)
            except APIError as error:
                self.failures.append(str(error))
                continue
            self.created += 1
            if made.spec.scheduler_name != names.SCHEDULER:
                self.failures.append(f"{made.metadata.name} was not reviewed")


class Looker:
    """Shakes hands with a webhook again and again, trusting only what each caBundle says at that moment.

    The API server keeps connections open, and so would not notice for a while.
    """

    def __init__(self, client: Client, port: int, address: str = "127.0.0.1", name: str = "127.0.0.1") -> None:
        self._client, self._address, self._name = client, (address, port), name
        self.handshakes = 0
        self.shown: list[str] = []
        """The serial numbers of the certificates that were shown, each once."""
        self.trusted: set[bytes] = set()
        """Every caBundle that was seen."""
        self.failures: list[str] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(0.05):
            for bundle in set(bundles_of(self._client)):
                self.trusted.add(bundle)
                try:
                    serial = self._handshake(bundle)
                except (OSError, ValueError) as error:
                    self.failures.append(f"{error} with {read_bundle(bundle)}")
                    continue
                self.handshakes += 1
                if serial not in self.shown:
                    self.shown.append(serial)

    def _handshake(self, bundle: bytes) -> str:
        context = ssl.create_default_context(cadata=bundle.decode())
        with (
            socket.create_connection(self._address, 5) as plain,
            context.wrap_socket(plain, server_hostname=self._name) as secured,
        ):
            return str((secured.getpeercert() or {})["serialNumber"])


def keys_in(secret: CertificateSecret) -> list[str]:
    """Every line of every key in it: what must stand nowhere else."""
    keys = [value for name, value in (secret.data or {}).items() if name.endswith(".key")]
    return [line for key in keys for line in key.decode().splitlines() if line and not line.startswith("-----")]
