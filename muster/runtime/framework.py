"""Protocols of runtime plugins, and the framework that runs the plugins in a fixed order.

A plugin class implements a protocol by having its method; it need not inherit from the protocol.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from muster.api.fields import Findings, InvalidFieldError
from muster.runtime.info import Info
from muster.runtime.plan import Compiled, Component, Plan


class RuntimePlugin(Protocol):
    """Base protocol: every plugin has a name, which is recorded as the source of its additions."""

    name: str


@runtime_checkable
class CustomValidation(RuntimePlugin, Protocol):
    """Protocol of plugins that check a workload when it is submitted."""

    def validate(self, info: Info) -> Findings:
        """Return all errors and warnings about the workload, with field paths."""


@runtime_checkable
class EnforceMLPolicy(RuntimePlugin, Protocol):
    """Protocol of plugins that set pod counts, slots, environment variables and ports for one framework."""

    framework: str

    def enforce_ml_policy(self, info: Info) -> None:
        """Change `info`.

        The method is called only for the plugin's framework. Host names are not known yet at this point, so use
        `info.Late`.
        """


@runtime_checkable
class EnforcePodGroupPolicy(RuntimePlugin, Protocol):
    """Protocol of plugins that mark the pods as members of a gang."""

    def enforce_pod_group_policy(self, info: Info) -> None:
        """Set the gang of `info`, and the labels or annotations that make its pods members."""


@runtime_checkable
class EnforcePodSpec(RuntimePlugin, Protocol):
    """Protocol of plugins that add parts to the pods that depend neither on the framework nor on the gang."""

    def enforce_pod_spec(self, info: Info) -> None:
        """Change the pod sets of `info`; called for every workload."""


@runtime_checkable
class PodNetwork(RuntimePlugin, Protocol):
    """Protocol of plugins that set the host names of the pods."""

    def identify_pod_network(self, info: Info) -> None:
        """Change `hosts` and `subdomain` of the pod sets in `info`."""


@runtime_checkable
class ComponentBuilder(RuntimePlugin, Protocol):
    """Protocol of plugins that build the objects that create the pods, and other objects that the workload needs."""

    def build(self, plan: Plan) -> Iterable[Component]:
        """Return objects that are ready to be applied; empty for a plan that needs no objects of this plugin."""


@runtime_checkable
class WatchExtension(RuntimePlugin, Protocol):
    """Protocol of plugins that name the kinds of objects whose changes affect their workloads."""

    def watched(self) -> Iterable[str]:
        """Return the names of the kinds, each as `plural.group` (`configmaps` for the core group)."""


@runtime_checkable
class TrainJobStatusPlugin(RuntimePlugin, Protocol):
    """Protocol of the plugin that computes the status of a workload from its components; there is at most one."""

    def status(self, components: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Return the status, or None if the status is still unknown."""


class Framework:
    """The plugins in the given order, and names of resources that count as accelerators in addition to the known ones.

    Raises ValueError at start-up if two plugins have the same name or framework, or if two compute a status.
    """

    def __init__(self, plugins: Sequence[RuntimePlugin], accelerators: Sequence[str] = ()) -> None:
        self.plugins = tuple(plugins)
        self._accelerators = tuple(accelerators)
        self.validations = [plugin for plugin in plugins if isinstance(plugin, CustomValidation)]
        self.ml_policies = [plugin for plugin in plugins if isinstance(plugin, EnforceMLPolicy)]
        self.pod_group_policies = [plugin for plugin in plugins if isinstance(plugin, EnforcePodGroupPolicy)]
        self.pod_specs = [plugin for plugin in plugins if isinstance(plugin, EnforcePodSpec)]
        self.pod_networks = [plugin for plugin in plugins if isinstance(plugin, PodNetwork)]
        self.component_builders = [plugin for plugin in plugins if isinstance(plugin, ComponentBuilder)]
        self.watch_extensions = [plugin for plugin in plugins if isinstance(plugin, WatchExtension)]
        self.status = _only([plugin for plugin in plugins if isinstance(plugin, TrainJobStatusPlugin)])
        self.frameworks = sorted(policy.framework for policy in self.ml_policies)
        _unique("set up the same framework", self.frameworks)
        _unique("have the same name", [plugin.name for plugin in plugins])

    def validate(self, info: Info) -> Findings:
        """Return the errors and warnings of all plugins."""
        findings = Findings()
        self.prepared(info)
        for plugin in self.validations:
            findings.add(plugin.validate(info))
        return findings

    def plan(self, info: Info) -> Plan:
        """Run the plugins for ML policy, pod-group policy, pods and network, in this order, and return the plan.

        The first InvalidFieldError of a plugin ends the run.
        """
        self.prepared(info)
        for policy in self.ml_policies:
            if policy.framework == info.framework:
                policy.enforce_ml_policy(info)
        for group in self.pod_group_policies:
            group.enforce_pod_group_policy(info)
        for pods in self.pod_specs:
            pods.enforce_pod_spec(info)
        for network in self.pod_networks:
            network.identify_pod_network(info)
        return info.freeze()

    def prepared(self, info: Info) -> Info:
        """Return the workload, with the additional accelerators that the settings name."""
        for pod_set in info.pod_sets:
            pod_set.more_accelerators = self._accelerators
        return info

    def build(self, plan: Plan) -> list[Component]:
        """Return the objects of all component builders, ordered by stage and then by builder."""
        components = [component for builder in self.component_builders for component in builder.build(plan)]
        return sorted(components, key=lambda component: component.stage)

    def compile(self, info: Info) -> Compiled:
        """Validate and plan the workload, and build its objects; `info` must not be used afterwards."""
        findings = self.validate(info)
        if findings.errors:
            return Compiled(None, (), findings)
        try:
            plan = self.plan(info)
        except InvalidFieldError as error:
            findings.errors.append(error.error)
            return Compiled(None, (), findings)
        return Compiled(plan, tuple(self.build(plan)), findings)

    def watched(self) -> list[str]:
        """Return the kinds (`plural.group`) that the plugins watch, without duplicates."""
        return sorted({kind for plugin in self.watch_extensions for kind in plugin.watched()})


def _unique(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"two plugins {what}: {', '.join(twice)}")


def _only(plugins: Sequence[TrainJobStatusPlugin]) -> TrainJobStatusPlugin | None:
    if len(plugins) > 1:
        raise ValueError(f"only one plugin can compute a status, not {' and '.join(plugin.name for plugin in plugins)}")
    return plugins[0] if plugins else None
