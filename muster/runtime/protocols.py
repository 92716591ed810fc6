"""The protocols of plugins: a class takes part in each one whose method it has."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from muster.api.fields import Findings
from muster.runtime.component import Component
from muster.runtime.info import Info
from muster.runtime.plan import Plan


class Plugin(Protocol):
    """Every plugin has a name, which is the provenance of its additions."""

    name: str


@runtime_checkable
class CustomValidation(Plugin, Protocol):
    """Checks a workload when it is submitted."""

    def validate(self, info: Info) -> Findings:
        """All mistakes, with field paths."""


@runtime_checkable
class EnforceMLPolicy(Plugin, Protocol):
    """Sets counts, slots, env and ports of one framework."""

    framework: str

    def enforce_ml_policy(self, info: Info) -> None:
        """Changes `info`; called only for its framework. Host names are not known yet: use `info.Late`."""


@runtime_checkable
class EnforcePodGroupPolicy(Plugin, Protocol):
    """Marks the pods as members of a gang."""

    def enforce_pod_group_policy(self, info: Info) -> None:
        """Sets the gang of `info`, and the labels or annotations by which its pods are members."""


@runtime_checkable
class EnforcePodSpec(Plugin, Protocol):
    """Adds parts of pods that belong to neither a framework nor a gang."""

    def enforce_pod_spec(self, info: Info) -> None:
        """Changes the pod sets of `info`; called for all of them."""


@runtime_checkable
class PodNetwork(Plugin, Protocol):
    """Sets the host names of the pods."""

    def identify_pod_network(self, info: Info) -> None:
        """Changes `hosts` and `subdomain` of the pod sets in `info`."""


@runtime_checkable
class ComponentBuilder(Plugin, Protocol):
    """Builds the objects that a workload needs beside its pods, or that make its pods."""

    def build(self, plan: Plan) -> Iterable[Component]:
        """Objects, ready to apply; none for a plan that is not its own."""


@runtime_checkable
class WatchExtension(Plugin, Protocol):
    """Names the kinds whose changes concern its workloads."""

    def watched(self) -> Iterable[str]:
        """Kinds as `plural.group` (`configmaps` for the core group)."""


@runtime_checkable
class TrainJobStatus(Plugin, Protocol):
    """Computes the status of a workload from its components; at most one plugin does."""

    def status(self, components: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """The status, or None if it is not known yet."""
