"""The command line of the extender process and its settings file; actions and plugins have a separate file."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from extender.planner.timing import DEFAULTS, NoticeSeconds, Part, Seconds, Timing
from muster.api import names
from muster.api.muster.node_faults import CONDITIONS, TAINTS, FaultRules, changed, rules_of
from muster.api.muster.pools import DEFAULT_POOL, LONGEST_NAME, is_pool_name, lease_of
from muster.process import settings
from muster.process.hosts import is_loopback
from muster.process.settings import Port, Settings
from muster.process.tls import Files

_CONDITION = re.compile(r"[^=]+=(True|False|Unknown)")


class ExtenderSettings(Settings, frozen=True, kw_only=True):
    """The settings of the extender, which are the same for all of its pods."""

    KIND: ClassVar[str] = "ExtenderConfiguration"

    port: Port = 9444
    """Port of the verbs on loopback, because the calling kube-scheduler runs in the same pod."""
    cert_file: str = ""
    """The extender's certificate (PEM). With `certFile`, `keyFile` and `clientCaFile`, the extender serves its verbs
    over TLS 1.3, and only to clients with a certificate. A changed file takes effect with the next connection. If the
    field is empty, the extender serves plain HTTP, on loopback only."""
    key_file: str = ""
    """Private key of the extender's certificate (PEM)."""
    client_ca_file: str = ""
    """Certificate authorities (PEM) of kube-scheduler's client certificate. These authorities must not sign
    certificates for other clients, because every client with such a certificate may call the extender."""
    status_port: Port = 9445
    """HTTP port of /metrics, /healthz and /readyz."""
    node_pool: str = DEFAULT_POOL
    """Node pool for which this extender and its kube-scheduler work (docs/autoscaling.md). The pool consists of the
    nodes whose label `muster.dev/node-pool` has this value, and of the gangs in the pool's queues. The empty name
    stands for the default pool, which consists of the nodes without this label."""
    lease_name: str = ""
    """Lease of the kube-scheduler in the extender's pod. Only the extender in the pod of the Lease's holder acts. If
    the field is empty, the Lease is named `muster-scheduler`, or `muster-scheduler-NAME` for the node pool NAME.
    """
    lease_namespace: str = names.SYSTEM_NAMESPACE
    """Namespace of the Lease."""
    barrier_timeout_s: Annotated[float, Meta(gt=0, lt=15)] = field(name="barrierTimeout", default=10.0)
    """Seconds that bind calls wait for the other members of their gang, counted from the first member's call. Each
    member extends this time by 0.05 s, up to a total of 290 s, which is less than kube-scheduler's timeout for bind
    calls. After the wait, the extender checks again that it is the leader.
    """
    recovery_timeout_s: Seconds = field(name="recoveryTimeout", default=DEFAULTS.recovery_s)
    """Seconds that a gang may stay partially bound; each member of the gang's minimum adds 0.05 s. After this time, the
    extender evicts all members, and the gang waits again as a whole. The time should be longer than a kubelet needs for
    a restart.
    """
    staleness_grace_s: float = field(name="stalenessGrace", default=DEFAULTS.staleness_grace_s)
    """Seconds that a started gang may lack members. After this time, the action stalegangeviction evicts the remaining
    members, so that the gang starts again as a whole. With a negative value, no gang is evicted for missing members.
    The time should suffice for the gang's controller to re-create the missing pods."""
    growth_delay_s: Seconds = field(name="growthDelay", default=DEFAULTS.growth_delay_s)
    """Seconds after a gang's start during which the gang gets no pods above its minimum. So waiting gangs come before
    surplus members of started gangs.
    """
    longest_notice_s: NoticeSeconds = field(name="longestNotice", default=DEFAULTS.longest_notice_s)
    """Maximum time, in seconds, between an eviction notice and the eviction (docs/preemption.md#notice). 0 disables
    notices. Every user may request notices of up to this time, and each notice delays capacity for other gangs. A queue
    can set a shorter limit."""
    suspect_conditions: tuple[str, ...] = ()
    """Additional node conditions, each as type=status, that make a node suspect. A suspect node gets no new pods, and
    gangs with members on the node are repaired. The conditions of node-problem-detector, NVSentinel and EKS are built
    in (docs/faults.md); a leading minus, as in -FrequentDockerRestart=True, removes a built-in condition."""
    suspect_taints: tuple[str, ...] = ()
    """Additional taint keys that make a node suspect; such a taint counts with any effect, and even for pods that
    tolerate it. A leading minus removes a built-in key."""
    node_fault_grace_s: Seconds = field(name="nodeFaultGrace", default=DEFAULTS.node_fault_grace_s)
    """Seconds for which a node may stay not ready before the gangs on the node are repaired; nodes often recover. The
    annotation `muster.dev/node-fault-grace` of a gang overrides this time."""
    fault_stop: Part = DEFAULTS.fault_stop
    """Fraction of all nodes. While at least this fraction of the nodes, and more than two nodes, are suspect or not
    ready, Muster repairs no gangs. kube-controller-manager stops its evictions in a zone at the same fraction.
    """
    config: str | None = None
    """File with actions, plugins and their arguments (docs/scheduler-configuration.md); changes of the file take effect
    at run time. If no file is set, Muster's default configuration is used.
    """
    record_folder: str = ""
    """Folder for recordings of the planner's inputs and decisions, for `muster replay` (docs/replay.md). For each
    object, recording needs about as much memory as the JSON of the fields that the planner reads. If no folder is set,
    nothing is recorded.
    """
    record_mib: Annotated[int, Meta(ge=1)] = field(name="recordMiB", default=256)
    """Maximum size of a recording on disk in MiB; beyond this size, the oldest files are deleted."""
    record_hours: Annotated[float, Meta(gt=0)] = 168.0
    """Maximum age of a recording's files in hours; older files are deleted."""
    traces_endpoint: str = ""
    """URL of a collector for OTLP over HTTP, e.g. http://collector.observability.svc:4318, which gets a trace for each
    gang (docs/operations.md). Requires `muster[tracing]`. If the field is empty, the environment variable
    OTEL_EXPORTER_OTLP_ENDPOINT is used. If that variable is empty, too, no traces are sent."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level of log entries that are written, as JSON to standard error."""

    @property
    def tls(self) -> Files | None:
        """The files for TLS, from valid settings; None if the verbs are served over plain HTTP."""
        return Files(Path(self.cert_file), Path(self.key_file), Path(self.client_ca_file)) if self.cert_file else None

    @property
    def fault_rules(self) -> FaultRules:
        """The rules that make a node suspect."""
        return rules_of(changed(CONDITIONS, self.suspect_conditions), changed(TAINTS, self.suspect_taints))

    @property
    def timing(self) -> Timing:
        """Times and limits that apply to planning cycles."""
        return Timing(
            recovery_s=self.recovery_timeout_s,
            staleness_grace_s=self.staleness_grace_s,
            growth_delay_s=self.growth_delay_s,
            longest_notice_s=self.longest_notice_s,
            node_fault_grace_s=self.node_fault_grace_s,
            fault_stop=self.fault_stop,
        )

    @property
    def lease(self) -> str:
        """The name of the Lease: the configured name, or the default name for the node pool."""
        return self.lease_name or lease_of(self.node_pool)

    def problems(self) -> Iterator[str]:
        """Yield messages about invalid settings, such as a node pool's invalid name, or TLS with a missing file."""
        if self.node_pool and not is_pool_name(self.node_pool):
            yield (
                f"nodePool: {self.node_pool!r} is not a node pool name: lower-case letters, digits and '-', at most "
                f"{LONGEST_NAME}, without '-' at the ends"
            )
        for text in self.suspect_conditions:
            if not _CONDITION.fullmatch(text.removeprefix("-")):
                yield f"suspectConditions: {text!r} must be a type and a status, as in KernelDeadlock=True"
        files = {"certFile": self.cert_file, "keyFile": self.key_file, "clientCaFile": self.client_ca_file}
        missing = [name for name, value in files.items() if not value]
        if missing and len(missing) < len(files):
            yield f"{missing[0]}: {', '.join(files)} are required together for TLS; {', '.join(missing)} is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderOptions:
    """Values of the extender's command line."""

    kubeconfig: str
    host: str
    status_host: str
    identity_prefix: str
    settings: ExtenderSettings


def parse(argv: Sequence[str] | None = None) -> ExtenderOptions:
    """Parse the arguments, by default the process's own; errors end the process with code 2."""
    parser = settings.parser_of("extender", "Muster's scheduler extender and planner.")
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address of the verbs; without TLS on loopback [default: %(default)s]")
    add("--status-host", default="127.0.0.1", help="address of the status port [default: %(default)s]")
    add("--identity-prefix", default="", help="prefix of the Lease's holder identity; empty: <hostname>_")
    given = settings.parse(parser, argv, ExtenderSettings)
    if given["settings"].tls is None and not is_loopback(given["host"]):
        parser.error(
            f"--host: {given['host']!r} is not a loopback address. Without TLS calls are not authenticated, and"
            " any client that reaches this port could bind pods. Either run the extender in the pod of its"
            " kube-scheduler with the default 127.0.0.1, or set certFile, keyFile and clientCaFile in the"
            " --settings file (docs/certificates.md)."
        )
    # kube-scheduler's identity in its Lease is "<host name>_<uuid>", and containers of a pod share one host name
    return ExtenderOptions(**{**given, "identity_prefix": given["identity_prefix"] or f"{os.uname().nodename}_"})
