"""The framework groups plugins by what they can do and runs them in the order given."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pytest

from muster.api.fields import FieldError, Findings
from muster.runtime import registry
from muster.runtime.framework import Framework
from muster.runtime.info import Info
from muster.runtime.plan import Component, Plan
from muster.runtime.plugins.torch import Torch
from muster.workloads.adapter import Owner


class Checker:
    """Objects to everything."""

    def __init__(self, name: str) -> None:
        self.name = name

    def validate(self, _info: Info) -> Findings:
        """One error and one warning."""
        return Findings([FieldError("spec", f"{self.name} objects", 1)], [f"{self.name} warns"])


class Policy:
    """Notes when it runs."""

    framework = "other"

    def __init__(self, name: str, runs: list[str]) -> None:
        self.name = name
        self._runs = runs

    def enforce_ml_policy(self, _info: Info) -> None:
        """First phase."""
        self._runs.append(f"{self.name} ml")

    def enforce_pod_group_policy(self, _info: Info) -> None:
        """Second phase."""
        self._runs.append(f"{self.name} group")

    def identify_pod_network(self, _info: Info) -> None:
        """Third phase."""
        self._runs.append(f"{self.name} network")

    def build(self, plan: Plan) -> Iterable[Component]:
        """Last phase."""
        yield Component({"kind": plan.framework, "metadata": {"name": self.name}}, self.name)


class StatusPlugin:
    """Computes nothing."""

    name = "Status"

    def status(self, _components: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """No status yet."""
        return None


def test_validation_gathers_all_errors() -> None:
    """Every plugin is asked, whatever the others found."""
    findings = Framework([Checker("a"), Checker("b")]).validate(Info("other", Owner(), []))
    assert [str(error) for error in findings.errors] == [
        "spec: Invalid value: 1: a objects",
        "spec: Invalid value: 1: b objects",
    ]
    assert findings.warnings == ["a warns", "b warns"]


def test_phases_run_in_order() -> None:
    """ML policy, pod-group policy, network, components; an ML policy only for its own framework."""
    runs: list[str] = []
    framework = Framework([Policy("p", runs), Torch()])
    plan = framework.plan(Info("other", Owner(), []))
    assert runs == ["p ml", "p group", "p network"]
    assert [(built.kind, built.name, built.plugin) for built in framework.build(plan)] == [("other", "p", "p")]
    runs.clear()
    framework.plan(Info("torch", Owner(), []))
    assert runs == ["p group", "p network"]


def test_one_status_and_one_plugin_for_each_framework() -> None:
    """A second one is a mistake in the registry and is found at start-up."""
    assert Framework([StatusPlugin()]).status is not None
    with pytest.raises(ValueError, match="only one plugin can compute a status"):
        Framework([StatusPlugin(), StatusPlugin()])
    with pytest.raises(ValueError, match="same framework"):
        Framework([Torch(), Torch()])


class Entry:
    """An entry point of a package of somebody else's."""

    name = "other"
    value = "other:Plugin"

    def __init__(self, plugin: object) -> None:
        self._plugin = plugin

    def load(self) -> object:
        """The class."""
        return self._plugin


def entries(monkeypatch: pytest.MonkeyPatch, *plugins: object) -> None:
    """These plugins are installed."""
    found = [Entry(plugin) for plugin in plugins]
    monkeypatch.setattr(registry, "entry_points", lambda group: found if group == "muster.runtime" else [])
    monkeypatch.setattr(registry, "installed", cache(registry.installed.__wrapped__))


def test_plugins_of_third_parties_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed plugin takes part after the built-in ones, and its framework can be asked for."""
    entries(monkeypatch, lambda: Policy("mine", []))
    framework = registry.framework()
    assert framework.plugins[-1].name == "mine"
    assert "other" in framework.frameworks


def test_a_broken_plugin_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that cannot be loaded or has no name is not left out silently."""

    def broken() -> object:
        raise OSError("no library")

    entries(monkeypatch, broken)
    with pytest.raises(RuntimeError, match=r"plugin other \(other:Plugin\) cannot be loaded: no library"):
        registry.framework()
    entries(monkeypatch, object)
    with pytest.raises(RuntimeError, match="has no name"):
        registry.framework()


def test_two_plugins_of_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is the provenance of what a plugin adds, so it must be its own."""
    entries(monkeypatch, lambda: Policy("Torch", []))
    with pytest.raises(ValueError, match="two plugins have the same name: Torch"):
        registry.framework()
