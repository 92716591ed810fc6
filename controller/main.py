"""The controller process, which exits with code 0 after SIGTERM, and with code 1 when it loses its lease."""

import os
import signal
import socket
from collections.abc import Sequence
from enum import Enum
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlsplit
from uuid import uuid4

import structlog

from certs.certificate import Certificate, read_bundle
from certs.content import REPORTS, SERVING, WEB
from certs.rotation import Terms, WantedCertificate
from controller.app import Controller
from controller.certificates import CertificateOptions, Keeper
from controller.settings import LOAD_WAIT_S, TRUST_WAIT_S, ControllerOptions, ControllerSettings, parse
from controller.shipped import Manifest, read_folder
from controller.trainjob.report import Authorities, Reports, ReportServer, TrainerReports
from muster.api.kubernetes.core import LEASES, Lease
from muster.api.kubernetes.meta import ObjectMeta
from muster.kube.client import Client
from muster.kube.errors import ConfigurationError
from muster.kube.lease import Elector
from muster.kube.loop import background_loop
from muster.process import memory, tracing
from muster.process.health import Debug, Health, StatusServer
from muster.process.lag import LoopLag
from muster.process.logs import configure
from muster.process.tls import Files, ServerTLS
from muster.resources.runtime import parse_duration_s
from muster.runtime import registry

log = structlog.get_logger(__name__)

LOST_LEASE = 1
_CONNECTIONS = 48
_SYNC_WARNING_S = 30


class ThreadEvents(Enum):
    """Events that other threads report to the main thread."""

    LEADING = "leading"
    LOST = "lost"
    END = "end"


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or until the lease is lost; return the exit code."""
    options = parse(argv)
    settings = options.settings
    configure("controller", settings.log_level)
    try:
        tracing.configure("controller", settings.traces_endpoint)
        client = Client.load(options.kubeconfig, user_agent="muster-controller", connections=_CONNECTIONS)
        shipped = read_folder(Path(settings.shipped)) if settings.shipped else []
        trusted = authorities_of(settings.cert_ca_file)
    except (ConfigurationError, ValueError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the error text suffices; a traceback would hide it
        return 2
    return ControllerProcess(client, options, shipped, trusted).run()


class ControllerProcess:
    """The controller process, with its lease and its status port."""

    def __init__(
        self,
        client: Client,
        options: ControllerOptions,
        shipped: list[Manifest],
        trusted: tuple[Certificate, ...] = (),
    ) -> None:
        settings = options.settings
        # A signal handler runs in the thread that waits in get. Only a SimpleQueue allows a put in this situation.
        self._news: SimpleQueue[ThreadEvents] = SimpleQueue()
        self._reports = _report_server(client, options)
        authorities = Authorities(Path(settings.report_ca_file)) if settings.report_port else None
        self._controller = Controller(
            client,
            settings.workers,
            shipped=shipped,
            lease=Lease(
                api_version=LEASES.api_version,
                kind=LEASES.kind,
                metadata=ObjectMeta(name=settings.lease_name, namespace=settings.lease_namespace),
            ),
            framework=registry.framework(
                *([TrainerReports(settings.report_url, authorities.pem)] if authorities else []),
                accelerators=settings.accelerators,
            ),
            authorities=authorities,
            target=settings.train_jobs_as,
            network_policies=settings.train_job_network_policies,
            native_groups=settings.native_pod_groups,
        )
        certificates = certificates_of(settings, trusted)
        self._keeper = Keeper(client, certificates, settings.lease_namespace) if certificates else None
        self._elector = Elector(
            client,
            settings.lease_namespace,
            settings.lease_name,
            f"{socket.gethostname()}_{uuid4()}",
            lease_duration_s=settings.lease_duration_s,
            renew_deadline_s=settings.lease_duration_s * 2 / 3,
            retry_period_s=settings.lease_duration_s / 7.5,
            on_started=lambda: self._news.put(ThreadEvents.LEADING),
            on_stopped=lambda: self._news.put(ThreadEvents.LOST),
        )
        health = Health()
        health.add_check("caches", self._controller.not_ready)
        health.add_check("queues", self._controller.queues.not_ready)
        self._lag = LoopLag()
        health.add_liveness_check("loop", self._lag.blocked)
        debug = Debug("controller", options, self._controller.sizes)
        self._status = StatusServer(settings.status_port, health, host=options.status_host, debug=debug)

    def run(self) -> int:
        """Run until a signal arrives, or until the lease is lost."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: self._news.put(ThreadEvents.END))
        background_loop().call_soon_threadsafe(self._lag.follow)
        for part in (self._status, self._keeper, self._reports, self._controller):
            if part:
                part.start()
        if self._keeper:
            self._keeper.make_first()
        if not self._synced():
            return self._end()
        log.info("caches are filled", objects=memory.freeze())
        self._elector.start()
        while (news := self._news.get()) is ThreadEvents.LEADING:
            log.info("leading")
            if self._keeper:
                self._keeper.lead(lambda: self._elector.leading)
            self._controller.lead(lambda: self._elector.leading)
        if news is ThreadEvents.LOST:
            # Exit at once: work in progress in other threads must end together with the lease.
            log.error("lease lost: this process ends, so that another one can be elected")
            os._exit(LOST_LEASE)
        return self._end()

    def _synced(self) -> bool:
        """Wait for the caches; return False if a signal arrives first."""
        seconds = count(1)
        while not self._controller.wait_synced(1.0):
            if not self._news.empty():
                return False
            if next(seconds) % _SYNC_WARNING_S == 0:
                log.warning("still waiting for the API server", why=self._controller.not_ready())
        return True

    def _end(self) -> int:
        log.info("ending")
        for part in (self._keeper, self._controller, self._elector, self._status, self._reports):
            if part:
                part.stop()
        return 0


def _report_server(client: Client, options: ControllerOptions) -> ReportServer | None:
    """Return the server to which trainers report their progress, if its port is set."""
    settings = options.settings
    if not settings.report_port:
        return None
    tls = ServerTLS(Files(Path(settings.report_cert_file), Path(settings.report_key_file)))
    return ReportServer(Reports(client), options.report_host, settings.report_port, tls)


def authorities_of(file: str) -> tuple[Certificate, ...]:
    """Return the certificate authorities in a file (PEM); an empty tuple if no file is given.

    Raise ValueError if the file contains no certificate.
    """
    try:
        found = read_bundle(Path(file).read_bytes()) if file else ()
    except OSError as error:
        raise ValueError(f"certCaFile: {error}") from error
    if file and not found:
        raise ValueError(f"certCaFile: {file} contains no certificate (PEM)")
    return found


def certificates_of(settings: ControllerSettings, trusted: tuple[Certificate, ...] = ()) -> CertificateOptions | None:
    """Return the certificate options from valid settings; `trusted` are additional authorities for the caBundles.

    Return None if the settings name no Secret, because certificates are then provided as files.
    """
    if not settings.cert_secret:
        return None
    wanted = [
        WantedCertificate(
            name=SERVING, common_name="muster-webhook", names=frozenset(map(_normal, settings.cert_dns_name))
        )
    ]
    if settings.report_port and settings.cert_issuer == "own":
        host = _normal(urlsplit(settings.report_url).hostname or "")
        wanted.append(WantedCertificate(name=REPORTS, common_name="muster-reports", names=frozenset({host})))
    if settings.web_dns_name and settings.cert_issuer == "own":
        wanted.append(
            WantedCertificate(name=WEB, common_name="muster-web", names=frozenset(map(_normal, settings.web_dns_name)))
        )
    return CertificateOptions(
        secret=settings.cert_secret,
        issuer=settings.cert_issuer,
        trusted=trusted,
        wanted=tuple(wanted),
        terms=Terms(
            authority_life_s=parse_duration_s(settings.cert_authority_lifetime),
            life_s=parse_duration_s(settings.cert_lifetime),
            trust_wait_s=TRUST_WAIT_S,
            load_wait_s=LOAD_WAIT_S,
        ),
    )


def _normal(name: str) -> str:
    """Return a host name or IP address in the form used in certificates."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name
