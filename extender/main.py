"""The extender process, which connects the components and serves the verbs."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import structlog
import uvloop
from msgspec import to_builtins
from prometheus_client import Gauge

from extender.app import ExtenderVerbs, create_app
from extender.barrier import Barrier
from extender.budgetreports import BudgetReporter
from extender.cluster import LiveCluster, settle
from extender.commit import Committer
from extender.configfile import ConfigFile
from extender.cycles import Planner
from extender.milestones import Milestones
from extender.planner.framework.config import SchedulerConfig
from extender.planner.framework.session import Session
from extender.publish import ConfigPublisher, FailureMemory
from extender.record.folder import FolderError, RecordingFolder
from extender.record.hook import RecordingHook
from extender.record.lines import FORMAT, ConfigLine, Head
from extender.record.recorder import PlannerRecorder as InputRecorder
from extender.settings import ExtenderOptions, ExtenderSettings, parse
from extender.usage import Meter, UsageFeed
from extender.verbs.bind import Bind, Binder
from extender.verbs.filter import Filter
from extender.verbs.preempt import preempt
from extender.verbs.prioritize import Prioritize
from muster.api.kubernetes import core, meta, scheduling
from muster.api.muster.configuration import name_for
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.config import load_config
from muster.kube.errors import ConfigurationError
from muster.kube.events import EventWriter
from muster.kube.lease import LeaseFollower
from muster.kube.loopclient import LoopClient
from muster.process import logs, memory, serve, tracing
from muster.process.health import Debug, Health, StatusServer
from muster.process.lag import LoopLag
from muster.process.tls import FileError, ServerTLS, send_end

log = structlog.get_logger()
LEADING = Gauge(
    "muster_leading", "1 while the kube-scheduler next to this extender holds the lease, by node pool", ["pool"]
)
USER_AGENT = "muster-extender"
BINDINGS = 32
"""Number of concurrent binding requests, each on its own connection."""


class Extender:
    """All components of the extender process; `loop` is the event loop that handles verbs and sends requests."""

    def __init__(self, options: ExtenderOptions, config_file: ConfigFile, loop: asyncio.AbstractEventLoop) -> None:
        settings = options.settings
        config = load_config(options.kubeconfig or None)
        client = Client(config, user_agent=USER_AGENT, loop=loop)
        self._follower = LeaseFollower(
            client, settings.lease_namespace, settings.lease, options.identity_prefix, monotonic_s=time.monotonic
        )
        self._recorder = EventWriter(client, "muster-extender", wall_s=time.time)
        self._barrier = Barrier(timeout_s=settings.barrier_timeout_s, monotonic_s=time.monotonic)
        self._recording = recorder_of(settings, config_file)
        hook = RecordingHook(self._recording) if self._recording else None
        self._cluster = LiveCluster(
            client, wake=self._wake, pool=settings.node_pool, rules=settings.fault_rules, hook=hook
        )
        self._committer = Committer(
            client,
            self._cluster,
            self._barrier,
            self._recorder,
            active=self._active,
            wall_s=time.time,
            monotonic_s=time.monotonic,
        )
        writes, namespace = self._committer.writes, settings.lease_namespace
        pool, suspects = settings.node_pool, settings.fault_rules.published
        publisher = ConfigPublisher(
            client,
            namespace,
            config_file,
            writes,
            pool=pool,
            suspects=suspects,
            timing=settings.timing,
            monotonic_s=time.monotonic,
        )
        self._committer.publish = publisher.write
        memory = FailureMemory(client, self._cluster, namespace, name_for(pool), wall_s=time.time)
        self._committer.keep_failures, self._committer.recall_failures = memory.keep, memory.recall
        self._usage = UsageFeed(client, namespace, monotonic_s=time.monotonic)
        meter = Meter()
        budgets = BudgetReporter(self._recorder, wall_s=time.time)
        self._planner = Planner(
            self._cluster,
            self._committer,
            config_file.current,
            active=lambda: self._active() and self._usage.ready(),
            arrived=self._barrier.arrived,
            wall_s=time.time,
            monotonic_s=time.monotonic,
            timing=settings.timing,
            hook=hook,
            usage=lambda snapshot, now: meter.advanced(budgets.believed(self._usage.current), snapshot, now),
            report_budgets=budgets.report,
        )
        bindings = LoopClient(config, user_agent=USER_AGENT, connections=BINDINGS)
        self.verbs = ExtenderVerbs(
            Filter(self._cluster, active=self._active),
            Prioritize(self._cluster, session=self._last_session),
            Bind(
                self._cluster,
                self._barrier,
                Binder(bindings),
                active=self._active,
                on_release=self._committer.mark_binding,
                session=self._last_session,
            ),
            partial(preempt, self._cluster),
        )
        self._config_file = config_file
        # A refused configuration is reported as an Event of the Lease that this extender follows, because the Lease
        # always exists.
        named = meta.ObjectMeta(name=settings.lease, namespace=settings.lease_namespace)
        lease = core.Lease(api_version=core.LEASES.api_version, kind=core.LEASES.kind, metadata=named)
        refuse = partial(self._recorder.event, lease, "Warning", "ConfigRefused")
        self._config_file.follow(self._reconfigure, refuse)
        milestones = Milestones(active=self._active, owns=self._owns, wall_s=time.time)
        self._cluster.observe(POD_GROUPS, milestones.group)
        self._cluster.observe(scheduling.NATIVE_POD_GROUPS, milestones.native)
        self._cluster.observe(PLACEMENTS, milestones.placement)
        self._cluster.observe(QUEUES, milestones.queue)
        self._settling: asyncio.Task[None] | None = None
        LEADING.labels(settings.node_pool).set_function(lambda: float(self._follower.active))
        health = Health()
        health.add_check("caches", self._cluster.not_ready)
        self._lag = LoopLag()
        health.add_liveness_check("loop", self._lag.blocked)
        debug = Debug("extender", options, self._sizes, lambda: loop)
        self._status = StatusServer(settings.status_port, health, host=options.status_host, debug=debug)

    def start(self) -> None:
        """Start all threads and watches of the process. Call this method on the event loop."""
        self._lag.follow()
        self._status.start()
        self._follower.start()
        self._recorder.start()
        if self._recording is not None:
            self._recording.start()
        self._cluster.start()
        self._usage.start()
        self._planner.start()
        self._settling = asyncio.create_task(settle(lambda: self._cluster.synced))
        self._config_file.start()

    def let_go(self) -> None:
        """Answer all held bind calls with an error, so that kube-scheduler sends the calls again to the next leader.

        Call this method on the event loop.
        """
        self._barrier.cancel_all()
        if self._settling is not None:
            self._settling.cancel()

    def stop(self) -> None:
        """Stop all threads and watches of the process."""
        self._config_file.stop()
        self._planner.stop()
        self._committer.stop()
        self._usage.stop()
        self._cluster.stop()
        self._follower.stop()
        self._recorder.stop()
        self._status.stop()
        if self._recording is not None:
            self._recording.stop()

    def pages(self) -> Mapping[str, Callable[[], object]]:
        """Return a mapping from names to the plugins' HTTP pages."""
        return self._planner.pages

    def _sizes(self) -> dict[str, int]:
        """Return the numbers of cached objects and of held bind calls, for the debug page."""
        return self._cluster.sizes() | {"held binds": self._cluster.ask(lambda _: self._barrier.waiting())}

    def _active(self) -> bool:
        return self._follower.active

    def _owns(self, queue: str) -> bool:
        return queue in self._cluster.state.queues

    def _last_session(self) -> Session | None:
        return self._planner.session

    def _reconfigure(self, configuration: SchedulerConfig) -> None:
        if self._recording is not None:
            self._recording.record(ConfigLine(text=self._config_file.last_report[0]))
        self._planner.reconfigure(configuration)

    def _wake(self, namespace: str | None) -> None:
        self._planner.wake(namespace)


def recorder_of(settings: ExtenderSettings, config_file: ConfigFile) -> InputRecorder | None:
    """Return the configured recorder of the planner's inputs. Raises FolderError if its directory is not writable."""
    if not settings.record_folder:
        return None
    most, age_s = settings.record_mib * 1024 * 1024, settings.record_hours * 3600
    content = to_builtins(settings)
    head = Head(
        format=FORMAT,
        version=version("muster"),
        pool=settings.node_pool,
        config=config_file.last_report[0],
        settings=to_builtins(settings.timing)
        | {name: content[name] for name in ("suspectConditions", "suspectTaints")},
    )
    folder = RecordingFolder(Path(settings.record_folder), most_bytes=most, most_age_s=age_s, wall_s=time.time)
    return InputRecorder(folder, head, wall_s=time.time)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM, then return the exit code."""
    options = parse(argv)
    settings = options.settings
    memory.share_arenas()
    logs.configure("extender", settings.log_level)
    try:
        tracing.configure("extender", settings.traces_endpoint)
        loop = uvloop.new_event_loop()
        extender = Extender(options, ConfigFile(Path(settings.config) if settings.config else None), loop)
    except (ConfigurationError, FolderError, ValueError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - a traceback would hide the error text
        return 2
    try:
        tls = ServerTLS(settings.tls) if settings.tls else None
        if tls:
            tls.read_files()
            send_end(tls)
        serve.run(
            create_app(extender.verbs, extender.pages, authenticated=tls is not None),
            host=options.host,
            port=settings.port,
            on_start=extender.start,
            on_stopping=extender.let_go,
            on_stop=extender.stop,
            loop=loop,
            tls=tls,
        )
    except (OSError, FileError) as error:
        log.error("cannot serve", why=str(error))  # noqa: TRY400 - as above
        return 1
    return 0
