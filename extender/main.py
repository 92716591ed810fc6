"""The extender process: wires the parts together and serves the verbs."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import structlog
from prometheus_client import Gauge

from extender.app import Verbs, create_app
from extender.barrier import Barrier
from extender.cluster import Cluster
from extender.commit import Committer
from extender.cycle import parts_of
from extender.framework import config
from extender.framework.session import GROWTH_DELAY_S, RECOVERY_S, STALENESS_GRACE_S, Session
from extender.planner import Planner
from extender.selfcheck import SelfCheck
from extender.verbs.bind import Bind, Binder
from extender.verbs.filter import Filter
from extender.verbs.preempt import preempt
from extender.verbs.prioritize import Prioritize
from muster.kube.client import Client
from muster.kube.events import Recorder
from muster.kube.follower import LeaseFollower
from muster.process import logs
from muster.process.health import Health, StatusServer
from muster.process.server import serve

log = structlog.get_logger()
LEADING = Gauge("muster_leading", "1 while the kube-scheduler beside this extender holds the lease")
THREADS = 1200
"""Bind calls of one gang are held in a thread each; threads are made only when they are needed."""
POOL_SIZE = 288
"""Connections that are kept: one per binding of those that may be on their way at once, and some for the planner."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said."""

    kubeconfig: str
    status_port: int
    lease_namespace: str
    lease_name: str
    identity_prefix: str
    barrier_timeout_s: float
    recovery_timeout_s: float
    staleness_grace_s: float
    growth_delay_s: float
    scheduler_config: config.SchedulerConfig


class Extender:
    """All parts of the process. Built before the fork without threads; `start` runs in the worker."""

    def __init__(self, options: Options) -> None:
        self.options = options
        client = Client.load(options.kubeconfig or None, user_agent="muster-extender", pool_size=POOL_SIZE)
        self._follower = LeaseFollower(
            client, options.lease_namespace, options.lease_name, options.identity_prefix, monotonic_s=time.monotonic
        )
        self._recorder = Recorder(client, "muster-extender", wall_s=time.time)
        self._barrier = Barrier(timeout_s=options.barrier_timeout_s, monotonic_s=time.monotonic, on_arrival=self._wake)
        self._cluster = Cluster(client, wake=self._wake)
        self._committer = Committer(client, self._cluster, self._barrier, self._recorder, wall_s=time.time)
        actions, plugins = parts_of(options.scheduler_config)
        self._planner = Planner(
            self._cluster,
            self._committer,
            actions,
            plugins,
            active=self._active,
            arrived=self._barrier.arrived,
            wall_s=time.time,
            monotonic_s=time.monotonic,
            recovery_s=options.recovery_timeout_s,
            staleness_grace_s=options.staleness_grace_s,
            growth_delay_s=options.growth_delay_s,
        )
        self.verbs = Verbs(
            Filter(self._cluster, active=self._active),
            Prioritize(self._cluster, session=self._last_session),
            Bind(
                self._cluster,
                self._barrier,
                Binder(client),
                active=self._active,
                on_release=self._committer.say_binding,
                session=self._last_session,
            ),
            partial(preempt, self._cluster),
        )
        self._selfcheck = SelfCheck(self._cluster)
        LEADING.set_function(lambda: float(self._follower.active))
        health = Health()
        health.add_check("caches", lambda: None if self._cluster.synced else "the caches are not filled yet")
        self._status = StatusServer(options.status_port, health)

    def start(self) -> None:
        """Starts all threads; called in the worker, since threads do not survive a fork."""
        self._status.start()
        self._follower.start()
        self._recorder.start()
        self._cluster.start()
        self._planner.start()
        self._selfcheck.start()

    def stop(self) -> None:
        """Ends them; held binds are answered with an error and come again."""
        self._barrier.cancel_all()
        self._selfcheck.stop()
        self._planner.stop()
        self._committer.stop()
        self._cluster.stop()
        self._follower.stop()
        self._recorder.stop()
        self._status.stop()

    def pages(self) -> Mapping[str, Callable[[], object]]:
        """What plugins show over HTTP."""
        return self._planner.pages

    def _active(self) -> bool:
        return self._follower.active

    def _last_session(self) -> Session | None:
        return self._planner.session

    def _wake(self) -> None:
        self._planner.wake()


@click.command(help="Muster's scheduler extender and planner.")
@click.option("--kubeconfig", default="", help="Empty: the pod's own credentials.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=int, default=9444, show_default=True, help="The verbs, plain HTTP: same pod only.")
@click.option("--status-port", type=int, default=9445, show_default=True, help="/metrics, /healthz, /readyz.")
@click.option("--lease-namespace", default="muster-system", show_default=True)
@click.option("--lease-name", default="muster-scheduler", show_default=True, help="kube-scheduler's Lease to follow.")
@click.option("--identity-prefix", default="", help="How its holder begins. [default: <hostname>_]")
@click.option("--barrier-timeout", type=float, default=10.0, show_default=True, help="Seconds.")
@click.option(
    "--recovery-timeout", type=float, default=RECOVERY_S, show_default=True, help="Seconds a gang may stay partial."
)
@click.option(
    "--staleness-grace",
    type=float,
    default=STALENESS_GRACE_S,
    show_default=True,
    help="Seconds a started gang may lack members before the rest is evicted; negative: for ever.",
)
@click.option(
    "--growth-delay",
    type=float,
    default=GROWTH_DELAY_S,
    show_default=True,
    help="Seconds after its start for which a gang gets no more than its minimum.",
)
@click.option("--config", "config_file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--log-level", default="info", show_default=True)
def main(
    *,
    kubeconfig: str,
    host: str,
    port: int,
    status_port: int,
    lease_namespace: str,
    lease_name: str,
    identity_prefix: str,
    barrier_timeout: float,
    recovery_timeout: float,
    staleness_grace: float,
    growth_delay: float,
    config_file: Path | None,
    log_level: str,
) -> None:
    """Reads the options, refuses a wrong configuration before anything starts, and serves until SIGTERM."""
    logs.configure("extender", log_level)
    try:
        scheduler_config = config.parse(config_file.read_text() if config_file else "")
        parts_of(scheduler_config)
    except ValueError as error:
        raise click.ClickException(f"{config_file}: {error}") from error
    options = Options(
        kubeconfig=kubeconfig,
        status_port=status_port,
        lease_namespace=lease_namespace,
        lease_name=lease_name,
        identity_prefix=identity_prefix or f"{os.uname().nodename}_",
        barrier_timeout_s=barrier_timeout,
        recovery_timeout_s=recovery_timeout,
        staleness_grace_s=staleness_grace,
        growth_delay_s=growth_delay,
        scheduler_config=scheduler_config,
    )
    extender = Extender(options)
    serve(
        create_app(extender.verbs, extender.pages),
        host=host,
        port=port,
        threads=THREADS,
        name="muster-extender",
        on_worker_start=extender.start,
        on_worker_stop=extender.stop,
    )
