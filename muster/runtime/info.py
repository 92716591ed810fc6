"""The mutable form of a plan, which plugins change, and which `freeze` converts into the immutable plan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.api.fields import FieldError, InvalidFieldError
from muster.api.kubeflow.trainer import Trainer, TrainJob
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from muster.api.kubernetes.core import Container as WireContainer
from muster.api.kubernetes.core import EnvVar as WireEnv
from muster.api.kubernetes.core import PodSpec
from muster.api.kubernetes.endpoints import Endpoints
from muster.resources.accelerators import Accelerators, Claims, accelerators, no_claims
from muster.resources.pods import pod_requests
from muster.resources.vector import CPU, WHOLE, Vector, vector
from muster.runtime.plan import ContainerPlan, GangShape, InitPlan, Mount, Plan, PlannedEnvVar, PodSetPlan, Role, Volume
from muster.runtime.settings import Setting
from muster.workloads.adapter import FieldPath, Owner, Value


@dataclass(frozen=True, slots=True)
class Late:
    """A value that depends on the pod network, which is known only after all plugins have run."""

    of: Callable[[], Value]


def resolved(value: Value | Late) -> Value:
    """Return the value, once the pod network is known."""
    return value.of() if isinstance(value, Late) else value


def text(value: Value | Late) -> str:
    """Return the value as text (for a command or a file); raises TypeError for a field of the pod."""
    result = resolved(value)
    if isinstance(result, FieldPath):
        raise TypeError(f"{result.path} is known only inside the pod, so a command or file cannot contain its value")
    return result


Variables = Mapping[str, tuple[Value | Late, str]]
"""Maps the name of a variable to its value and its source."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that a plugin sets; its value may still depend on the pod network."""

    name: str
    value: Value | Late
    plugin: str
    source: str


@dataclass(slots=True)
class ShapedContainer:
    """One container: as the user wrote it (`given`, with its field path), and the additions of plugins."""

    path: str
    given: WireContainer
    init: bool = False
    env: list[Variable] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    mounts: list[Mount] = field(default_factory=list)
    command: Sequence[str | Late] | None = None
    readiness: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The container's name, by which patches and plugins find it."""
        return self.given.name

    @property
    def requests(self) -> Vector:
        """The container's requests after merging; the limit replaces a missing request, as in the API server.

        Raises InvalidFieldError for a value that is not a quantity.
        """
        resources = self.given.resources
        wanted = {**resources.limits, **resources.requests}
        try:
            return vector(wanted)
        except ValueError as error:
            message = f"must hold quantities; {error}"
            raise InvalidFieldError(FieldError(f"{self.path}.resources", message, wanted)) from error

    def set(self, plugin: str, variables: Variables) -> None:
        """Add variables in order; a variable that another plugin has already set is not changed."""
        there = {variable.name for variable in self.env}
        self.env += [
            Variable(name, value, plugin, source) for name, (value, source) in variables.items() if name not in there
        ]


@dataclass(slots=True)
class PodSet:
    """Pods of one shape, as the owner's adapter or the runtime describes them; see also `PodSetPlan`.

    `rank` is the source from which a member gets its own rank. `hosts` returns the host names of a number of pods, in
    rank order. `target` is the container that runs the framework; None for other pods. `template` is the spec of the
    pods as JSON. `own_rank` is the rank of the pod that is being admitted; None if a template describes the pods.
    `inits` are functions that return an init container (or None) once the pod network is known. `given_annotations` are
    the annotations that the pods have already, `claims` finds the requests of the pods' claims, and `more_accelerators`
    are additional accelerators that settings name.
    """

    name: str
    count: int
    rank: Value
    hosts: Callable[[int], Endpoints]
    subdomain: str
    target: ShapedContainer | None
    containers: list[ShapedContainer]
    spec: PodSpec = field(default_factory=PodSpec)
    role: Role = "trainer"
    jobs: int = 1
    slots: int | None = None
    after: dict[str, str] = field(default_factory=dict)
    volumes: list[Volume] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str | Late] = field(default_factory=dict)
    searches: list[str | Late] = field(default_factory=list)
    template: Mapping[str, Any] = field(default_factory=dict)
    own_rank: int | None = None
    inits: list[Callable[[], InitPlan | None]] = field(default_factory=list)
    given_annotations: Mapping[str, str] = field(default_factory=dict)
    claims: Claims = no_claims
    more_accelerators: Sequence[str] = ()

    @property
    def endpoints(self) -> Endpoints:
        """The host name of each pod.

        Plugins for ML policies must use a `Late` value, because the network is known only later.
        """
        return self.hosts(self.count)

    @property
    def requests(self) -> Vector:
        """The requests of one pod after merging; raises InvalidFieldError for a value that is not a quantity."""
        for container in self.containers:
            _ = container.requests  # the error has the path of the container
        try:
            return pod_requests(self.spec)
        except ValueError as error:
            message = f"must hold quantities; {error}"
            raise InvalidFieldError(FieldError("spec.overhead", message, self.spec.overhead)) from error

    @property
    def accelerators(self) -> Accelerators:
        """The devices of the container that runs the framework."""
        if self.target is None:
            return Accelerators(0, seen=False)
        own, requests = self.target.given, self.target.requests
        return accelerators(own, requests, self.spec, self.given_annotations, self.claims, self.more_accelerators)

    @property
    def cpus(self) -> int:
        """CPUs of the container that runs the framework, rounded up, and at least one."""
        requests = self.target.requests if self.target else {}
        return max(1, -(-requests.get(CPU, 0) // WHOLE))

    def port(self, number: int) -> None:
        """Open a TCP port in the container that runs the framework, unless a container already opens it.

        On the host's network, two containers must not open the same port. In a pod with a network of its own, it
        suffices if one container opens the port.
        """
        taken = {(port.container_port, port.protocol) for each in self.containers for port in each.given.ports}
        if self.target and (number, "TCP") not in taken and number not in self.target.ports:
            self.target.ports.append(number)

    def container(self, name: str) -> ShapedContainer | None:
        """Return the container or init container with this name."""
        return next((container for container in self.containers if container.name == name), None)


@dataclass(frozen=True, slots=True)
class UserEnv:
    """Variables that the user sets in the framework's container, with the field path of the list."""

    variables: Sequence[WireEnv] = ()
    path: str = ""


@dataclass(slots=True)
class Info:
    """A workload that is being planned.

    `settings` are the user's parameters. `target` is the kind of object that creates the pods of a TrainJob (`Job`,
    `JobSet`); it is empty if the owner creates its pods itself. `train_job` and `runtime` are the objects as read, for
    plugins that need other fields than this class has. `base` is the runtime's template after merging.
    """

    framework: str
    owner: Owner
    pod_sets: list[PodSet]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    user_env: UserEnv = field(default_factory=UserEnv)
    injections: list[ShapedContainer] = field(default_factory=list)
    gang: GangShape | None = None
    target: str = ""
    train_job: TrainJob | None = None
    runtime: TrainingRuntime | ClusterTrainingRuntime | None = None
    base: Mapping[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def workload(self) -> str:
        """The name of the workload as used in sentences, such as `Job train`."""
        return str(self.owner)

    @property
    def trainer(self) -> Trainer | None:
        """The trainer settings of the TrainJob; None for a workload without them."""
        return self.train_job.spec.trainer if self.train_job else None

    @property
    def runtime_name(self) -> str:
        """The name of the runtime; "" for a workload without a runtime."""
        return self.runtime.metadata.name if self.runtime else ""

    @property
    def trainers(self) -> list[PodSet]:
        """The pod sets whose pods take part in the training."""
        return [pod_set for pod_set in self.pod_sets if pod_set.role == "trainer"]

    @property
    def size(self) -> int:
        """The number of pods that take part in the training (the world size in nodes)."""
        return sum(pod_set.count for pod_set in self.trainers)

    def setting(self, key: str) -> Setting | None:
        """Return the setting with this name; None if the user has not set it."""
        return self.settings.get(key)

    def leader(self) -> Value:
        """Return the host name of rank 0; "" while there are no pods. Use this method only in a `Late` value."""
        return next((pod_set.endpoints[0] for pod_set in self.trainers if pod_set.count), "")

    def pod_set(self, name: str) -> PodSet | None:
        """Return the pod set with this name."""
        return next((pod_set for pod_set in self.pod_sets if pod_set.name == name), None)

    def freeze(self) -> Plan:
        """Return the immutable plan of the workload."""
        return Plan(
            framework=self.framework,
            pod_sets=tuple(_freeze(pod_set) for pod_set in self.pod_sets),
            owner=self.owner,
            gang=self.gang,
            settings=dict(self.settings),
            target=self.target,
            base=self.base,
            labels=dict(self.labels),
            annotations=dict(self.annotations),
            suspend=bool(self.train_job and self.train_job.spec.suspend),
        )


def _freeze(pod_set: PodSet) -> PodSetPlan:
    containers = (_freeze_container(container) for container in pod_set.containers)
    return PodSetPlan(
        name=pod_set.name,
        count=pod_set.count,
        slots=pod_set.slots,
        endpoints=pod_set.endpoints,
        subdomain=pod_set.subdomain,
        containers=tuple(container for container in containers if not container.empty),
        role=pod_set.role,
        jobs=pod_set.jobs,
        volumes=tuple(pod_set.volumes),
        labels=dict(pod_set.labels),
        annotations={key: text(value) for key, value in pod_set.annotations.items()},
        searches=tuple(text(domain) for domain in pod_set.searches),
        requests=pod_set.requests,
        after=dict(pod_set.after),
        inits=tuple(filter(None, (make() for make in pod_set.inits))),
    )


def _freeze_container(container: ShapedContainer) -> ContainerPlan:
    return ContainerPlan(
        name=container.name,
        env=tuple(PlannedEnvVar(each.name, resolved(each.value), each.plugin, each.source) for each in container.env),
        ports=tuple(container.ports),
        mounts=tuple(container.mounts),
        command=None if container.command is None else tuple(text(word) for word in container.command),
        readiness=container.readiness,
        init=container.init,
    )
