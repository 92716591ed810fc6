"""Runs the plugins: grouped by protocol once, then always in the same order."""

from collections.abc import Sequence

from muster.api.fields import Findings, InvalidFieldError
from muster.runtime.component import Compiled, Component
from muster.runtime.info import Info
from muster.runtime.plan import Plan
from muster.runtime.protocols import (
    ComponentBuilder,
    CustomValidation,
    EnforceMLPolicy,
    EnforcePodGroupPolicy,
    EnforcePodSpec,
    Plugin,
    PodNetwork,
    TrainJobStatus,
    WatchExtension,
)


class Framework:
    """The plugins in the order given.

    ValueError for two plugins of one name or one framework, or two that compute a status: all found at start-up.
    """

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = tuple(plugins)
        self.validations = [plugin for plugin in plugins if isinstance(plugin, CustomValidation)]
        self.ml_policies = [plugin for plugin in plugins if isinstance(plugin, EnforceMLPolicy)]
        self.pod_group_policies = [plugin for plugin in plugins if isinstance(plugin, EnforcePodGroupPolicy)]
        self.pod_specs = [plugin for plugin in plugins if isinstance(plugin, EnforcePodSpec)]
        self.pod_networks = [plugin for plugin in plugins if isinstance(plugin, PodNetwork)]
        self.component_builders = [plugin for plugin in plugins if isinstance(plugin, ComponentBuilder)]
        self.watch_extensions = [plugin for plugin in plugins if isinstance(plugin, WatchExtension)]
        self.status = _only([plugin for plugin in plugins if isinstance(plugin, TrainJobStatus)])
        self.frameworks = sorted(policy.framework for policy in self.ml_policies)
        _unique("set up the same framework", self.frameworks)
        _unique("have the same name", [plugin.name for plugin in plugins])

    def validate(self, info: Info) -> Findings:
        """The errors and warnings of all plugins."""
        findings = Findings()
        for plugin in self.validations:
            findings.add(plugin.validate(info))
        return findings

    def plan(self, info: Info) -> Plan:
        """ML policy, then pod-group policy, pods and network; the first InvalidFieldError ends it."""
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

    def build(self, plan: Plan) -> list[Component]:
        """The objects of all component builders, in order of their stages and then of the builders."""
        components = [component for builder in self.component_builders for component in builder.build(plan)]
        return sorted(components, key=lambda component: component.stage)

    def compile(self, info: Info) -> Compiled:
        """Validates, plans and builds; `info` is used up."""
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
        """The kinds (`plural.group`) that plugins watch, each once."""
        return sorted({kind for plugin in self.watch_extensions for kind in plugin.watched()})


def _unique(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"two plugins {what}: {', '.join(twice)}")


def _only(plugins: Sequence[TrainJobStatus]) -> TrainJobStatus | None:
    if len(plugins) > 1:
        raise ValueError(f"only one plugin can compute a status, not {' and '.join(plugin.name for plugin in plugins)}")
    return plugins[0] if plugins else None
