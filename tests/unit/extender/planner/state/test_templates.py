"""Gangs are planned for the pods that the controller will make, not only for what their templates say."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import convert
from plugin_jobs import job, shaped

from extender.planner.state import templates
from extender.planner.state.devicetable import DeviceTable
from extender.planner.state.podclass import ClassTable
from extender.planner.state.podshape import host_ports
from extender.planner.state.templates import Templates, planned_job, restarts_whole
from muster.api.kubernetes.core import PodSpec
from muster.api.limits import TEMPLATE_BYTES, TERMS, LimitError
from muster.api.volcano.batch import LifecyclePolicy, VolumeSpec
from muster.resources.planned import planned_template
from muster.volcano.manifests import claim_names


@pytest.mark.parametrize("on_the_node", [False, True])
@pytest.mark.parametrize("plugins", [
    {},
    {"mpi": ["--port=2222"]},
    {"pytorch": []},
    {"pytorch": ["--master=nobody"]},
    {"ray": ["--head=master", "--headContainer=main", "--port=7000"]},
    {"mpi": [], "pytorch": ["--port=2345"], "svc": [], "env": []},
])  # fmt: skip
def test_ports_of_plugins(plugins: dict[str, list[str]], on_the_node: bool) -> None:  # noqa: FBT001 - a parameter of a table
    """On the network of the node they are taken there, by each pod of the task that opens them."""
    of = job({"master": 1, "worker": 2}, **plugins)
    for task in of.spec.tasks:
        if on_the_node:
            task.template["spec"]["hostNetwork"] = True
    for template in Templates(ClassTable(), DeviceTable()).templates_of(of):
        made: Any = shaped(of, template.task.name, 0)
        assert template.cls.host_ports == host_ports(convert(made["spec"], PodSpec))


def test_claims_of_the_job() -> None:
    """Every pod mounts them, so every pod must be able to."""
    of = job({"w": 1})
    of.spec.volumes = [
        VolumeSpec(mount_path="/a", volume_claim_name="data"),
        VolumeSpec(mount_path="/b", volume_claim={}),
    ]
    (template,) = Templates(ClassTable(), DeviceTable()).templates_of(of)
    mounted = [volume["persistentVolumeClaim"]["claimName"] for volume in shaped(of, "w", 0)["spec"]["volumes"]]
    assert sorted(mounted) == sorted(claim_names(of))
    assert sorted(use.key for use in template.cls.claims) == sorted(f"n/{name}" for name in mounted)


def test_templates_with_too_many_terms_are_refused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the job changes."""
    made: list[str] = []
    monkeypatch.setattr(Templates, "_template", _counted(Templates._template, made))
    of = job({"w": 1})
    terms = [{"topologyKey": f"key-{number}", "labelSelector": {}} for number in range(TERMS.value + 1)]
    far = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    plain = of.spec.tasks[0].template["spec"]
    of.spec.tasks[0].template["spec"] = {**plain, "affinity": far}
    known = Templates(ClassTable(), DeviceTable())
    for _ in range(3):
        with pytest.raises(LimitError, match="at most 64"):
            known.templates_of(of)
    assert len(made) == 1
    known.forget(of)
    of.spec.tasks[0].template["spec"] = plain
    assert len(known.templates_of(of)) == 1


def test_a_claim_concerns_only_templates_that_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be thousands of others."""
    known = Templates(ClassTable(), DeviceTable())
    for number in range(20):
        of = job({"w": 1})
        of.metadata.uid = f"uid-{number}"
        uses = [{"name": "c", "resourceClaimName": f"claim-{number % 10}"}]
        of.spec.tasks[0].template["spec"]["resourceClaims"] = uses
        known.templates_of(of)
    equipped: list[str] = []
    monkeypatch.setattr(Templates, "_equipped", _counted(Templates._equipped, equipped))
    known.equip_again({"n/claim-3"})
    assert len(equipped) == 2
    known.forget(of)
    equipped.clear()
    known.equip_again({"n/claim-9"})
    assert len(equipped) == 1


@pytest.mark.parametrize("over", [0, 1])
def test_a_template_of_the_limit_is_planned_by_and_a_larger_one_is_not(
    over: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reason stands in its place, and stays when the Job is read again."""
    of = job({"w": 1})
    size = planned_template(of.spec.tasks[0].template).size_bytes
    monkeypatch.setattr(templates, "TEMPLATE_BYTES", TEMPLATE_BYTES._replace(value=size - over))
    planned = planned_job(of)
    assert [*planned.spec.tasks[0].template] == (["unreadable"] if over else ["metadata", "spec"])
    assert planned_job(planned) == planned


@pytest.mark.parametrize(("policies", "whole"), [
    ([], False),
    ([LifecyclePolicy(action="RestartJob", event="PodEvicted")], True),
    ([LifecyclePolicy(action="RestartJob", event="*")], True),
    ([LifecyclePolicy(action="RestartJob", events=["PodFailed", "PodEvicted"])], True),
    ([LifecyclePolicy(action="RestartJob", event="PodFailed")], False),
    ([LifecyclePolicy(action="RestartTask", event="PodEvicted")], False),
    ([LifecyclePolicy(action="AbortJob", event="*"), LifecyclePolicy(action="RestartJob", event="*")], True),
])  # fmt: skip
def test_a_job_restarts_whole_by_its_policies(policies: list[LifecyclePolicy], *, whole: bool) -> None:
    """When a pod is evicted, or at any event."""
    of = job({"w": 1})
    of.spec.policies = policies
    assert restarts_whole(of) is whole


def _counted(method: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    def counted(*given: Any) -> Any:
        calls.append(method.__name__)
        return method(*given)

    return counted
