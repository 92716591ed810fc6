"""The controller of the Secret with Muster's certificates, and of the webhooks' caBundles; `certs.rotation` decides.

Each pass reads objects only from the caches, and each write names the version of the object that was read. If another
client or process has written in the meantime, the write fails and the pass is repeated. The process may be killed at
any time; the next pass then continues its work.

Private keys are never logged or shown, and a Secret of another issuer is never written.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import structlog
from prometheus_client import Counter, Gauge

from certs import rotation
from certs.certificate import Certificate, read_bundle, write_bundle
from certs.content import Content, all_pairs, annotations_of, data_of, problems, read
from certs.issuing import all_steps, event_of
from certs.rotation import Since, Situation, Terms, WantedCertificate
from controller.kit import KeyController, Kit
from controller.worker import Retry
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.extensions import (
    CERTIFICATE_SECRETS,
    WEBHOOK_CONFIGURATIONS,
    CertificateSecret,
    WebhookConfiguration,
)
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, APIError, Conflict
from muster.kube.events import EventWriter
from muster.kube.reads import given
from muster.kube.reflector import Reflector

log = structlog.get_logger(__name__)

_KEY = "certificates"
_SOON_S = 1.0
_FIRST_S = 5.0
"""Maximum time, in seconds, for which the startup of the process waits for the (small) caches of certificates."""
_Configuration = tuple[Resource[WebhookConfiguration], WebhookConfiguration]
_Bundles = Mapping[str, list[tuple[Certificate, ...]]]
"""Maps the name of each webhook configuration to the caBundles of its webhooks."""
EXPIRES = Gauge(
    "muster_certificate_expiry_timestamp_seconds",
    "Expiry time of each certificate in the Secret, by its name, in seconds since the epoch.",
    ["name"],
)
DUE = Gauge(
    "muster_certificate_renewal_timestamp_seconds",
    "Time at which each certificate in the Secret will be renewed, by its name, in seconds since the epoch.",
    ["name"],
)
TRUSTED = Gauge(
    "muster_certificate_authorities", "Trusted certificate authorities, including the next and the previous authority."
)
PROBLEMS = Gauge(
    "muster_certificate_problems",
    "Number of problems with certificates; Events of the Secret and the log describe them.",
)
STEPS = Counter("muster_certificate_steps_total", "Steps to issue or replace certificates, by kind.", ["step"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    """The Secret to manage, and its settings."""

    secret: str
    issuer: Literal["own", "external"]
    wanted: tuple[WantedCertificate, ...]
    terms: Terms
    trusted: tuple[Certificate, ...] = ()
    """Additional certificate authorities for the caBundles."""


class Keeper(KeyController):
    """Worker that manages the caBundles and the Secret with the certificates, which is in `namespace`.

    `wall_s` returns the current time, by default the API server's.
    """

    def __init__(
        self,
        client: Client,
        options: CertificateOptions,
        namespace: str,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] | None = None,
    ) -> None:
        wall_s = wall_s or (lambda: client.server_time_s() or time.time())
        super().__init__(Kit(client, EventWriter(client, "muster-controller"), monotonic_s, wall_s), _KEY)
        self._options = options
        self._namespace = namespace
        self._leaves = tuple(each.name for each in options.wanted)
        self._secret = self._cache(CERTIFICATE_SECRETS, options.secret, namespace)
        self._configurations: list[tuple[Resource[WebhookConfiguration], Reflector[WebhookConfiguration]]] = [
            (kind, self._cache(kind, names.WEBHOOKS)) for kind in WEBHOOK_CONFIGURATIONS
        ]
        self._trusted, self._loaded = Since(), Since()
        self._reported: list[str] = []

    def start(self) -> None:
        """Start the caches; a standby process also has these caches, and reports when certificates expire."""
        self._recorder.start()
        for reflector in self.reflectors.values():
            reflector.start()

    def make_first(self) -> None:
        """Create a missing Secret, in any replica, because the webhook's pods cannot start without the Secret.

        The leader creates all other objects. If several replicas try to create the Secret, only one succeeds, because
        names are unique in the API server.
        """
        if self._options.issuer != "own":
            return
        end_s = time.monotonic() + _FIRST_S
        synced = all(each.wait_synced(max(0.0, end_s - time.monotonic())) for each in self.reflectors.values())
        if synced and self._secret.store.get(f"{self._namespace}/{self._options.secret}") is None:
            bundles = _bundles(self._found())
            try:
                self._write_certificates(None, None, bundles, self._see(None, bundles))
            except APIError as error:
                log.info("the leader creates the first certificates", why=str(error))

    def lead(self, may_act: Callable[[], bool]) -> None:
        """Start the worker, which writes; `may_act` is called before each pass."""
        self.worker.may_act = may_act
        self.worker.queue.add(_KEY)
        self.worker.start()

    def stop(self) -> None:
        """Stop the worker, then the caches."""
        self.worker.stop()
        for reflector in self.reflectors.values():
            reflector.stop()
        self._recorder.stop()

    def process(self, _key: str) -> None:
        """Run one pass: first update the caBundles, which follow the current Secret; then update the Secret."""
        if waiting := [reflector for reflector in self.reflectors.values() if not reflector.synced]:
            many = f"{len(waiting)} of {len(self.reflectors)}"
            raise Retry(
                f"{many} caches are not in sync: check that the controller is allowed to list and watch their kinds"
            )
        secret = self._secret.store.get(f"{self._namespace}/{self._options.secret}")
        content = self._content(secret)
        configurations = self._found()
        bundles = _bundles(configurations)
        at = self._see(content, bundles)
        own = self._options.issuer == "own"
        trusting = Content() if content is None or (own and not content.ours) else content
        trusted = [self._trust(kind, found, trusting, at) for kind, found in configurations]
        written = own and self._write_certificates(secret, content, bundles, at)
        failure = next((each for each in trusted if isinstance(each, APIError)), None)
        if failure is None and (written or any(trusted)):
            self.worker.queue.add_after(_KEY, _SOON_S)  # usually a cache event starts the pass earlier
            return
        if isinstance(failure, Conflict):
            raise failure  # the caches are stale, and would report errors that are already corrected
        self._complain(secret, content, bundles, at.now_s)
        if failure:
            raise failure
        self.worker.queue.add_after(_KEY, rotation.next_pass_s(content, at))

    def _found(self) -> list[_Configuration]:
        """Return the existing webhook configurations."""
        return [(kind, found) for kind, each in self._configurations for found in each.store.list()]

    def _cache(self, kind: Resource[Any], name: str, namespace: str | None = None) -> Reflector[Any]:
        """Return a cache of a single object, selected by name, so that no right to read other objects is needed."""
        selector = f"metadata.name={name}"
        reflector: Reflector[Any] = Reflector(self._client, kind, namespace=namespace, field_selector=selector)
        reflector.add_handler(self._changed)
        self.reflectors[kind.plural] = reflector
        return reflector

    def _changed(self, old: object, new: object) -> None:
        if isinstance(new or old, CertificateSecret):
            measure(self._content(new if isinstance(new, CertificateSecret) else None))
        self.worker.queue.add(_KEY)

    def _content(self, secret: CertificateSecret | None) -> Content | None:
        if secret is None:
            return None
        meta = secret.metadata
        return read(secret.data or {}, meta.labels, meta.annotations, self._leaves)

    def _see(self, content: Content | None, bundles: _Bundles) -> Situation:
        """Record the current certificates and caBundles; return for how long this process has observed each of them."""
        now_s = self._kit.monotonic_s()
        held = [{each.fingerprint for each in bundle} for webhooks in bundles.values() for bundle in webhooks]
        leaves = [pair.certificate.fingerprint for pair in content.leaves.values()] if content else []
        everywhere = set.intersection(*held) if held else set()
        return Situation(
            now_s=self._wall_s(),
            terms=self._options.terms,
            wanted=self._options.wanted,
            trusted_s=self._trusted.update(everywhere, now_s),
            loaded_s=self._loaded.update(leaves, now_s),
        )

    def _trust(
        self, kind: Resource[WebhookConfiguration], found: WebhookConfiguration, content: Content, at: Situation
    ) -> bool | APIError:
        """Write the caBundles of a webhook configuration; return True if they changed.

        An API error is returned and not raised, so that the renewal of certificates continues.
        """
        changed = []
        for webhook in found.webhooks or ():
            present = _bundle_of(webhook)
            wanted = rotation.bundle_for(content, present, at, self._options.trusted)
            if wanted != present:
                pem = b64encode(write_bundle(wanted)).decode()
                changed.append({"name": webhook.name, "clientConfig": {"caBundle": pem}})
        if changed:
            name, version = found.metadata.name, found.metadata.resource_version
            patch = {"metadata": {"resourceVersion": version}, "webhooks": changed}
            try:
                self._client.strategic_patch(kind, name, patch)
            except APIError as error:
                return error
            log.info("caBundles written", configuration=f"{kind.kind} {name}", webhooks=len(changed))
        return bool(changed)

    def _write_certificates(
        self, secret: CertificateSecret | None, content: Content | None, bundles: _Bundles, at: Situation
    ) -> bool:
        """Carry out, in one write, all steps of the rotation that are due; return False if no step is due."""
        after, steps = all_steps(content, [bundle for webhooks in bundles.values() for bundle in webhooks], at)
        if after is None or not steps:
            return False
        stored = self._store(secret, after)
        for step in steps:
            STEPS.labels(type(step).__name__).inc()
            kind, reason, message = event_of(step, after)
            log.info("certificates changed", reason=reason, what=message)
            self._recorder.event(stored, kind, reason, message)
        return True

    def _store(self, secret: CertificateSecret | None, content: Content) -> CertificateSecret:
        """Create the Secret, or patch the version that was read; raise Conflict if the Secret has changed."""
        data = {name: b64encode(value).decode() if value else None for name, value in data_of(content).items()}
        metadata: dict[str, Any] = {"labels": {names.MANAGED_BY: names.MANAGER}, "annotations": annotations_of(content)}
        if secret:
            metadata["resourceVersion"] = secret.metadata.resource_version
            body = {"metadata": metadata, "data": data}
            return self._client.merge_patch(CERTIFICATE_SECRETS, self._options.secret, body, self._namespace)
        metadata |= {"name": self._options.secret, "annotations": given(**metadata["annotations"])}
        manifest = {"metadata": metadata, "type": "Opaque", "data": given(**data)}
        try:
            return self._client.create(CERTIFICATE_SECRETS, manifest, self._namespace)
        except AlreadyExists as error:
            raise Conflict(f"another controller has created the Secret {self._options.secret}") from error

    def _complain(
        self, secret: CertificateSecret | None, content: Content | None, bundles: _Bundles, now_s: float
    ) -> None:
        """Report each problem with the certificates once, not in every pass."""
        own = self._options.issuer == "own"
        found = problems(content, bundles, now_s=now_s, leaves=self._leaves, managed=own)
        PROBLEMS.set(len(found))
        for problem in found:
            if problem not in self._reported:
                log.warning("the certificates have problems", what=problem, secret=self._options.secret)
                if secret:
                    self._recorder.event(secret, "Warning", "CertificateProblem", problem)
        self._reported = found


def _bundles(configurations: Iterable[_Configuration]) -> _Bundles:
    return {
        f"{kind.kind} {found.metadata.name}": [_bundle_of(webhook) for webhook in found.webhooks or ()]
        for kind, found in configurations
    }


def _bundle_of(webhook: Any) -> tuple[Certificate, ...]:
    return read_bundle(webhook.client_config.ca_bundle or b"")


def measure(content: Content | None) -> None:
    """Set the metrics of the Secret's certificates, in every replica; drop the metrics of removed certificates."""
    EXPIRES.clear()
    DUE.clear()
    for name, certificate in all_pairs(content or Content()):
        EXPIRES.labels(name).set(certificate.ends_s)
        DUE.labels(name).set(certificate.due_s)
    TRUSTED.set(len(content.trusted) if content else 0)
