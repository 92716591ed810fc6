"""Gangs are planned for the pods that the controller will make, not only for what their templates say."""

from typing import Any

import pytest
from msgspec import convert
from plugin_jobs import job, shaped

from extender.planner.state.devicetable import DeviceTable
from extender.planner.state.podclass import ClassTable
from extender.planner.state.podshape import host_ports
from extender.planner.state.templates import Templates
from muster.api.kubernetes.core import PodSpec
from muster.api.volcano.batch import VolumeSpec
from muster.volcano.manifests import claim_names


@pytest.mark.parametrize("on_the_node", [False, True])
@pytest.mark.parametrize(
    "plugins",
    [
        {},
        {"mpi": ["--port=2222"]},
        {"pytorch": []},
        {"pytorch": ["--master=nobody"]},
        {"ray": ["--head=master", "--headContainer=main", "--port=7000"]},
        {"mpi": [], "pytorch": ["--port=2345"], "svc": [], "env": []},
    ],
)
def test_ports_of_plugins(plugins: dict[str, list[str]], on_the_node: bool) -> None:  # noqa: FBT001 - a parameter of a table
    """On the network of the node they are taken there, by each pod of the task that opens them."""
    of = job({"master": 1, "worker": 2}, **plugins)
    for task in of.spec.tasks:
        if on_the_node:
            task.template["spec"]["hostNetwork"] = True
    for template in Templates(ClassTable(), DeviceTable()).of(of):
        made: Any = shaped(of, template.task.name, 0)
        assert template.cls.host_ports == host_ports(convert(made["spec"], PodSpec))


def test_claims_of_the_job() -> None:
    """Every pod mounts them, so every pod must be able to."""
    of = job({"w": 1})
    of.spec.volumes = [
        VolumeSpec(mount_path="/a", volume_claim_name="data"),
        VolumeSpec(mount_path="/b", volume_claim={}),
    ]
    (template,) = Templates(ClassTable(), DeviceTable()).of(of)
    manifest = shaped(of, "w", 0)
    mounted = [volume["persistentVolumeClaim"]["claimName"] for volume in manifest["spec"]["volumes"]]
    assert sorted(mounted) == sorted(claim_names(of))
    assert sorted(use.key for use in template.cls.claims) == sorted(f"n/{name}" for name in mounted)
