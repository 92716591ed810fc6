"""The framework groups plugins by what they can do and runs them in the order given."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from muster.runtime.component import Component
from muster.runtime.fields import FieldError, Findings
from muster.runtime.framework import Framework
from muster.runtime.info import Info
from muster.runtime.plan import Owner, Plan
from muster.runtime.plugins.torch import Torch


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
