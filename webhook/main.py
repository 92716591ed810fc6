"""The webhook process: sets up the routes, fills the caches, and serves until SIGTERM."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import structlog

from certs.certificate import Pair, UnreadableError, read_bundle
from muster.api import names
from muster.api.kubernetes.extensions import WEBHOOK_CONFIGURATIONS, WebhookConfiguration
from muster.kube.client import Client
from muster.kube.errors import ConfigurationError
from muster.kube.loop import background_loop
from muster.kube.reflector import Reflector
from muster.process import logs, tracing
from muster.process.health import Check, Debug, Health, StatusServer
from muster.process.lag import LoopLag
from muster.process.prefork import serve
from muster.process.tls import FileError, Files
from muster.runtime import registry
from webhook.app import create_app, routes
from webhook.caches import Cached, ClusterLookups
from webhook.config import ResourceGroup, load
from webhook.senders import Senders
from webhook.settings import WebhookOptions, parse

log = structlog.get_logger(__name__)

THREADS = 4


class TrustCheck:
    """A readiness check that fails until every caBundle trusts the certificate, and never fails again afterwards.

    After a change of the issuer, replicas with the previous certificate serve until the caBundles contain the new
    authority. Therefore, no review fails during the change.

    Later certificates are issued only after every caBundle trusts their authority (docs/certificates.md).
    """

    def __init__(self, client: Client, files: Files) -> None:
        selector = f"metadata.name={names.WEBHOOKS}"
        self.reflectors: list[Reflector[WebhookConfiguration]] = [
            Reflector(client, kind, field_selector=selector) for kind in WEBHOOK_CONFIGURATIONS
        ]
        self._files = files
        self._trusted = False

    def problem(self) -> str | None:
        """Return the reason why an API server would refuse the certificate; None if every caBundle trusts it."""
        if self._trusted:
            return None
        try:
            shown = Pair.read(self._files.cert.read_bytes(), self._files.key.read_bytes())
        except (OSError, UnreadableError) as error:
            return f"the certificate cannot be read: {error}"
        for kind, reflector in zip(WEBHOOK_CONFIGURATIONS, self.reflectors, strict=True):
            bundles = [
                read_bundle(each.client_config.ca_bundle or b"")
                for found in reflector.store.list()
                for each in found.webhooks or ()
            ]
            if not bundles or not all(map(shown.vouched_by, bundles)):
                return f"the caBundles of the {kind.kind} {names.WEBHOOKS} do not trust the certificate"
        self._trusted = True
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM, and return the exit code."""
    options = parse(argv)
    settings = options.settings
    logs.configure("webhook", settings.log_level)
    try:
        tracing.check_endpoint(settings.traces_endpoint)
        groups = load(Path(settings.config)) if settings.config else ()
        client = Client.load(options.kubeconfig, user_agent="muster-webhook")
    except (ConfigurationError, ValueError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the error text suffices; a traceback would hide it
        return 2
    try:
        _serve(options, groups, client)
    except FileError as error:
        log.error("cannot serve", why=str(error))  # noqa: TRY400 - as above
    return 1


def _serve(options: WebhookOptions, groups: Sequence[ResourceGroup], client: Client) -> None:
    settings = options.settings
    cluster = ClusterLookups(client, native=settings.native_pod_groups and not settings.mark_pods)
    health = Health()
    for cached in cluster.caches:
        health.add_check(cached.kind, _synced(cached))
    files = Files(
        Path(settings.cert_file),
        Path(settings.key_file),
        Path(settings.client_ca_file) if settings.client_ca_file else None,
    )
    reflectors: list[Reflector[Any]] = [cached.reflector for cached in cluster.caches]
    if settings.wait_for_ca_bundles:
        trust = TrustCheck(client, files)
        health.add_check("certificate", trust.problem)
        reflectors += trust.reflectors
    lag = LoopLag()
    health.add_liveness_check("loop", lag.blocked)
    debug = Debug("webhook", options, lambda: {cached.kind: cached.reflector.size for cached in cluster.caches})
    status = StatusServer(settings.status_port, health, host=options.host, debug=debug)

    def start() -> None:
        for reflector in reflectors:
            reflector.start()
        background_loop().call_soon_threadsafe(lag.follow)
        status.start()
        tracing.configure("webhook", settings.traces_endpoint)

    def stop() -> None:
        status.stop()
        with ThreadPoolExecutor(len(reflectors)) as pool:  # each waits for the end of its watch
            list(pool.map(lambda reflector: reflector.stop(), reflectors))

    framework = registry.framework(accelerators=settings.accelerators)
    handlers = routes(
        cluster.lookups,
        framework,
        marks=settings.mark_pods,
        groups=groups,
        target=settings.train_jobs_as,
        durable_history=settings.durable_history,
    )
    serve(
        create_app(handlers, Senders(certified=bool(settings.client_ca_file))),
        host=options.host,
        port=settings.port,
        threads=THREADS,
        name="muster-webhook",
        files=files,
        drain_s=options.drain_seconds,
        on_worker_start=start,
        on_worker_stop=stop,
    )


def _synced(cached: Cached[Any]) -> Check:
    return lambda: None if cached.reflector.synced else "not listed yet"
