"""The command line of the extender process, and its settings file; actions and plugins have a file of their own."""

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
from muster.process.settings import Settings
from muster.process.tls import Files

_CONDITION = re.compile(r"[^=]+=(True|False|Unknown)")
Port = Annotated[int, Meta(ge=0, le=65535)]


class ExtenderSettings(Settings, frozen=True, kw_only=True):
    """The settings of the extender, the same for all its pods."""

    KIND: ClassVar[str] = "ExtenderConfiguration"

    port: Port = 9444
    """Port of the verbs that kube-scheduler calls, on loopback: both are in one pod."""
    cert_file: str = ""
    """The extender's certificate (PEM). With this and the next two fields the extender serves its verbs over TLS 1.3,
    and only to clients with a certificate. The next connection uses a new file. Empty: plain HTTP, on loopback only."""
    key_file: str = ""
    """Its key (PEM)."""
    client_ca_file: str = ""
    """The authorities (PEM) of kube-scheduler's client certificate: they must sign for no other client, as every one
    with such a certificate may call."""
    status_port: Port = 9445
    """HTTP port of /metrics, /healthz and /readyz."""
    node_pool: str = DEFAULT_POOL
    """The node pool of this pair (docs/autoscaling.md): it plans the nodes whose label `muster.dev/node-pool` has this
    value, and the gangs of the queues of that pool. Empty: the default pool, the nodes without that label."""
    lease_name: str = ""
    """The Lease of the kube-scheduler beside it. Its holder decides which extender acts. Empty: `muster-scheduler`,
    with a node pool `muster-scheduler-NAME`."""
    lease_namespace: str = names.SYSTEM_NAMESPACE
    """Namespace of that Lease."""
    barrier_timeout_s: Annotated[float, Meta(gt=0, lt=15)] = field(name="barrierTimeout", default=10.0)
    """Seconds that a bind waits for the other members of its gang, from the first member on. Each member adds 0.05, up
    to 290 in all, which is less than kube-scheduler's timeout of a bind call. After the wait the extender checks again
    that it leads."""
    recovery_timeout_s: Seconds = field(name="recoveryTimeout", default=DEFAULTS.recovery_s)
    """Seconds that a gang may stay partial, with some members bound and others not, and 0.05 more for each member of
    its minimum. Then the extender evicts all members, and the gang waits again as a whole. The time should be longer
    than a restart of a kubelet takes."""
    staleness_grace_s: float = field(name="stalenessGrace", default=DEFAULTS.staleness_grace_s)
    """Seconds that a started gang may lack members before the action stalegangeviction evicts the rest, so that the
    gang starts again as a whole. Negative: without end. The time should be long enough for the gang's controller to
    create the missing pods again."""
    growth_delay_s: Seconds = field(name="growthDelay", default=DEFAULTS.growth_delay_s)
    """Seconds after its start during which a gang gets no more than its minimum, so that gangs that still wait come
    before surplus members."""
    longest_notice_s: NoticeSeconds = field(name="longestNotice", default=DEFAULTS.longest_notice_s)
    """Longest time, in seconds, between the notice of an eviction and the eviction (docs/preemption.md#notice). 0: no
    gang gets a notice. Every user may ask for this time, and keeps capacity that is due to others for so long. A queue
    can allow less."""
    suspect_conditions: tuple[str, ...] = ()
    """More conditions of a node, each as type=status, that make it suspect: it gets no new pods, and gangs with
    members there are repaired. The conditions of node-problem-detector, NVSentinel and EKS are known (docs/faults.md);
    with a minus before it, as in -FrequentDockerRestart=True, a known one does not count."""
    suspect_taints: tuple[str, ...] = ()
    """More keys of taints that make a node suspect, with any effect, and also for pods that tolerate them. With a minus
    before it, a known key does not count."""
    node_fault_grace_s: Seconds = field(name="nodeFaultGrace", default=DEFAULTS.node_fault_grace_s)
    """Seconds that a node which is not ready is waited for before gangs are repaired, as nodes come back. Of a gang its
    annotation `muster.dev/node-fault-grace` says another time."""
    fault_stop: Part = DEFAULTS.fault_stop
    """Part of all nodes: while so many are suspect or not ready at once, and more than two, nothing is repaired.
    kube-controller-manager stops its evictions in a zone at the same part."""
    config: str | None = None
    """File with actions, plugins and their arguments (docs/scheduler-configuration.md), followed while the process
    runs. None: Muster's own."""
    record_folder: str = ""
    """Folder in which the planner's inputs and decisions are recorded, for `muster replay` (docs/replay.md). Recording
    needs some memory for each object, about the size of its JSON without fields that the planner does not read.
    Empty: no recording."""
    record_mib: Annotated[int, Meta(ge=1)] = field(name="recordMiB", default=256)
    """Most MiB of a recording on disk: the oldest part is dropped."""
    record_hours: Annotated[float, Meta(gt=0)] = 168.0
    """Hours that are kept at most."""
    traces_endpoint: str = ""
    """URL of a collector that takes OTLP over HTTP, e.g. http://collector.observability.svc:4318. It gets a trace for
    each gang (docs/operations.md), and `muster[tracing]` must be installed. Empty: what the variable
    OTEL_EXPORTER_OTLP_ENDPOINT says, else no traces."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged, as JSON on standard error."""

    @property
    def tls(self) -> Files | None:
        """The files of TLS, for settings without problems; None: the verbs are served over plain HTTP."""
        return Files(Path(self.cert_file), Path(self.key_file), Path(self.client_ca_file)) if self.cert_file else None

    @property
    def fault_rules(self) -> FaultRules:
        """The rules by which a node is suspect."""
        return rules_of(changed(CONDITIONS, self.suspect_conditions), changed(TAINTS, self.suspect_taints))

    @property
    def timing(self) -> Timing:
        """The times and limits that cycles depend on."""
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
        """The name of the Lease: the given one, else that of the pool's pair."""
        return self.lease_name or lease_of(self.node_pool)

    def problems(self) -> Iterator[str]:
        """A node pool that cannot be called so, and TLS without one of its files."""
        if self.node_pool and not is_pool_name(self.node_pool):
            yield (
                f"nodePool: {self.node_pool!r} is no name of a node pool: lower-case letters, digits and '-', at most "
                f"{LONGEST_NAME}, without '-' at the ends"
            )
        for text in self.suspect_conditions:
            if not _CONDITION.fullmatch(text.removeprefix("-")):
                yield f"suspectConditions: {text!r} must be a type and a status, as in KernelDeadlock=True"
        files = {"certFile": self.cert_file, "keyFile": self.key_file, "clientCaFile": self.client_ca_file}
        missing = [name for name, value in files.items() if not value]
        if missing and len(missing) < len(files):
            yield f"{missing[0]}: {', '.join(files)} are for TLS together; {', '.join(missing)} is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderOptions:
    """The values of the command line."""

    kubeconfig: str
    host: str
    status_host: str
    identity_prefix: str
    settings: ExtenderSettings


def parse(argv: Sequence[str] | None = None) -> ExtenderOptions:
    """Reads the arguments, by default those of this process; mistakes end the process with code 2."""
    parser = settings.parser_of("extender", "Muster's scheduler extender and planner.")
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address of the verbs; without TLS a loopback one [default: %(default)s]")
    add("--status-host", default="127.0.0.1", help="address of the status port [default: %(default)s]")
    add("--identity-prefix", default="", help="how the Lease's holder begins; empty: <hostname>_")
    given = settings.parse(parser, argv, ExtenderSettings)
    if given["settings"].tls is None and not is_loopback(given["host"]):
        parser.error(
            f"--host: {given['host']!r} is not a loopback address. Without TLS calls are not authenticated, and"
            " any client that reaches this port could bind pods. Run the extender in the pod of its kube-scheduler and"
            " leave 127.0.0.1, or name certFile, keyFile and clientCaFile in the file of --settings"
            " (docs/certificates.md)."
        )
    # kube-scheduler's identity in its Lease is "<host name>_<uuid>", and a pod's containers share one host name.
    return ExtenderOptions(**{**given, "identity_prefix": given["identity_prefix"] or f"{os.uname().nodename}_"})
