"""Gangs with claims to devices: Muster plans, the real kube-scheduler allocates every device, and both agree."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gang_jobs import job
from planes import Muster

from extender.planner.dynamic.cel import selector
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.devices import (
    CLAIM_TEMPLATES,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Device,
    DeviceAttribute,
    DeviceCapacity,
)
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
AT_ONCE_S = 60.0


class Drivers:
    """Publishes devices as a driver of a namespace's own would, and takes them back in the end."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.driver = f"{namespace}.example.com"
        self.device_class = f"{namespace}.example.com"

    def classify(self, **more: Any) -> None:
        """The class of all devices of the driver."""
        selectors = [{"cel": {"expression": f'device.driver == "{self.driver}"'}}]
        body = {"metadata": {"name": self.device_class}, "spec": {"selectors": selectors, **more}}
        self.client.create(DEVICE_CLASSES, self._typed("DeviceClass", body))

    def publish(self, node: str, *devices: dict[str, Any]) -> None:
        """All devices of a node."""
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": self.driver, "pool": pool, "nodeName": node, "devices": list(devices)}
        body = {"metadata": {"name": f"{self.namespace}-{node}"}, "spec": spec}
        self.client.create(RESOURCE_SLICES, self._typed("ResourceSlice", body))

    def taint(self, pool: str) -> str:
        """A rule that keeps everyone from the devices of a pool; its name."""
        name = f"{self.namespace}-{pool}"
        selector = {"driver": self.driver, "pool": pool}
        spec = {"deviceSelector": selector, "taint": {"key": "sick", "effect": "NoSchedule"}}
        body = {"metadata": {"name": name}, "spec": spec}
        self.client.create(DEVICE_TAINT_RULES, self._typed("DeviceTaintRule", body))
        return name

    def template(self, name: str, count: int = 1, *cel: str) -> None:
        """A claim template for so many devices that match."""
        body = {"metadata": {"name": name}, "spec": {"spec": self.spec(count, *cel)}}
        self.client.create(CLAIM_TEMPLATES, self._typed("ResourceClaimTemplate", body), self.namespace)

    def claim(self, name: str, count: int = 1, *cel: str) -> None:
        """A claim that several pods may use."""
        body = {"metadata": {"name": name}, "spec": self.spec(count, *cel)}
        self.client.create(RESOURCE_CLAIMS, self._typed("ResourceClaim", body), self.namespace)

    def spec(self, count: int, *cel: str) -> dict[str, Any]:
        """What is asked for."""
        selectors = [{"cel": {"expression": expression}} for expression in cel]
        exactly = {"deviceClassName": self.device_class, "count": count, "selectors": selectors}
        return {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}

    def gang(self, name: str, replicas: int, *, template: str = "", claim: str = "", cpu: str = "1") -> None:
        """A Job whose pods use a claim each, or all of them one."""
        body = job(name, self.namespace, replicas=replicas, gpus=0, cpu=cpu)
        given = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
        spec = body["spec"]["tasks"][0]["template"]["spec"]
        spec["resourceClaims"] = [{"name": "devices", **given}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "devices"}]
        self.client.create(JOBS, body, self.namespace)

    def runs(self, name: str) -> bool:
        """Whether the Job runs whole."""
        return self.client.get(JOBS, name, self.namespace).status.state.phase == "Running"

    def nodes(self, name: str) -> Counter[str]:
        """Node → pods of the Job there."""
        pods = self.client.list(PODS, self.namespace)
        return Counter(pod.spec.node_name for pod in pods if pod.metadata.name.startswith(f"{name}-"))

    def why(self, name: str) -> str:
        """What the gang's PodGroup says it waits for; empty if it says nothing."""
        groups = self.client.list(POD_GROUPS, self.namespace)
        conditions = [
            condition
            for group in groups
            if group.metadata.name.startswith(f"{name}-")
            for condition in group.status.conditions
            if condition.type == "Unschedulable" and condition.status == "True"
        ]
        return conditions[0].message if conditions else ""

    def allocated(self) -> Counter[tuple[str, str]]:
        """(pool, device) → claims that have it."""
        claims = self.client.list(RESOURCE_CLAIMS, self.namespace)
        allocations = [claim.status.allocation for claim in claims if claim.status.allocation]
        return Counter((each.pool, each.device) for one in allocations for each in one.devices.results)

    def epochs(self) -> set[int]:
        """Epochs of the namespace's placements."""
        return {placement.spec.epoch for placement in self.client.list(PLACEMENTS, self.namespace)}

    def clear(self) -> None:
        """What is not in the namespace goes."""
        for rule in self.client.list(DEVICE_TAINT_RULES):
            if rule.metadata.name.startswith(f"{self.namespace}-"):
                self.client.delete(DEVICE_TAINT_RULES, rule.metadata.name)
        for item in self.client.list(RESOURCE_SLICES):
            if item.spec.driver == self.driver:
                self.client.delete(RESOURCE_SLICES, item.metadata.name)
        self.client.delete(DEVICE_CLASSES, self.device_class)

    @staticmethod
    def _typed(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": "resource.k8s.io/v1", "kind": kind, **body}


@pytest.fixture
def drivers(plane: Plane, namespace: str) -> Iterator[Drivers]:
    """A driver and its class."""
    one = Drivers(plane.client(), namespace)
    one.classify()
    yield one
    plane.mend()
    one.clear()


def two_nodes_of_two(drivers: Drivers) -> None:
    """node-0001 and node-0002 have two devices each."""
    for node in ("node-0001", "node-0002"):
        drivers.publish(node, {"name": "d0"}, {"name": "d1"})


def test_a_gang_of_one_device_each_fills_the_nodes_that_have_them(drivers: Drivers, wait_for: WaitFor) -> None:
    """At the first attempt, and every device is given once."""
    two_nodes_of_two(drivers)
    drivers.template("one")
    drivers.gang("a", 4, template="one")
    wait_for(lambda: drivers.runs("a"), AT_ONCE_S, "the gang to run")
    assert drivers.nodes("a") == {"node-0001": 2, "node-0002": 2}
    assert sorted(drivers.allocated().values()) == [1] * 4
    assert drivers.epochs() == {1}


def test_a_gang_that_does_not_fit_says_what_it_lacks(drivers: Drivers, plane: Plane, wait_for: WaitFor) -> None:
    """In its PodGroup and in `muster explain`; it starts once there are devices enough."""
    two_nodes_of_two(drivers)
    drivers.template("one")
    drivers.gang("a", 3, template="one")
    wait_for(lambda: drivers.runs("a"), AT_ONCE_S, "the first gang to run")
    drivers.gang("b", 2, template="one")
    wait_for(lambda: drivers.why("b"), AT_ONCE_S, "the second gang to say why it waits")
    assert f"too few devices of class {drivers.device_class}" in drivers.why("b")
    told = Muster(plane.kubeconfig)("explain", "job", "b", "-n", drivers.namespace)
    assert f"too few devices of class {drivers.device_class}" in told
    assert f"1 deviceclass.resource.kubernetes.io/{drivers.device_class}" in told
    assert drivers.nodes("b").total() == drivers.nodes("b")[""]
    drivers.publish("node-0003", {"name": "d0"})
    wait_for(lambda: drivers.runs("b"), AT_ONCE_S, "the second gang to run")
    assert max(drivers.allocated().values()) == 1


def test_a_selector_by_attribute_and_capacity_decides(drivers: Drivers, wait_for: WaitFor) -> None:
    """Only one node has devices of the model with as much memory; the gang goes there at the first attempt."""
    for node, model, memory in (
        ("node-0001", "small", "80Gi"), ("node-0002", "large", "40Gi"), ("node-0004", "large", "80Gi")
    ):  # fmt: skip
        devices = (
            {"name": f"d{index}", "attributes": {"model": {"string": model}}, "capacity": {"memory": {"value": memory}}}
            for index in range(2)
        )
        drivers.publish(node, *devices)
    model = f'device.attributes["{drivers.driver}"].model == "large"'
    memory = f'device.capacity["{drivers.driver}"].memory.compareTo(quantity("60Gi")) >= 0'
    drivers.template("large", 1, model, memory)
    drivers.gang("a", 2, template="large")
    wait_for(lambda: drivers.runs("a"), AT_ONCE_S, "the gang to run")
    assert drivers.nodes("a") == {"node-0004": 2}
    assert drivers.epochs() == {1}


def test_a_gang_waits_for_devices_that_a_rule_taints(drivers: Drivers, wait_for: WaitFor) -> None:
    """Nobody publishes the taint but the rule: it is planned elsewhere, and waits until the rule goes."""
    two_nodes_of_two(drivers)
    drivers.template("one")
    rule = drivers.taint("node-0001")
    drivers.gang("a", 2, template="one")
    wait_for(lambda: drivers.runs("a"), AT_ONCE_S, "the first gang to run")
    assert drivers.nodes("a") == {"node-0002": 2}
    drivers.gang("b", 2, template="one")
    wait_for(lambda: drivers.why("b"), AT_ONCE_S, "the second gang to say why it waits")
    assert f"too few devices of class {drivers.device_class}" in drivers.why("b")
    drivers.client.delete(DEVICE_TAINT_RULES, rule)
    wait_for(lambda: drivers.runs("b"), AT_ONCE_S, "the second gang to run")
    assert drivers.nodes("b") == {"node-0001": 2}
    assert drivers.epochs() == {1}


def test_pods_that_share_a_claim_run_on_one_node(drivers: Drivers, wait_for: WaitFor) -> None:
    """The node that has its two devices; a second gang with such a claim goes to the other node."""
    two_nodes_of_two(drivers)
    for name in "ab":
        drivers.claim(f"shared-{name}", 2)
        drivers.gang(name, 3, claim=f"shared-{name}")
    wait_for(lambda: drivers.runs("a") and drivers.runs("b"), AT_ONCE_S, "both gangs to run")
    assert len(drivers.nodes("a")) == len(drivers.nodes("b")) == 1
    assert drivers.nodes("a").keys() != drivers.nodes("b").keys()
    assert drivers.epochs() == {1}


@pytest.mark.slow
def test_an_extender_that_starts_again_counts_the_same(drivers: Drivers, plane: Plane, wait_for: WaitFor) -> None:
    """Killed while a gang runs and another one waits; devices in use stay so until their gang is gone."""
    two_nodes_of_two(drivers)
    drivers.template("one")
    drivers.gang("a", 3, template="one")
    wait_for(lambda: drivers.runs("a"), AT_ONCE_S, "the first gang to run")
    drivers.gang("b", 3, template="one")
    wait_for(lambda: drivers.why("b"), AT_ONCE_S, "the second gang to wait")
    plane.part("extender").kill()
    plane.part("extender").start()
    drivers.client.delete(JOBS, "b", drivers.namespace)
    drivers.gang("c", 2, template="one")
    wait_for(lambda: drivers.why("c"), AT_ONCE_S, "a gang that does not fit to say so")
    drivers.publish("node-0006", {"name": "d0"})
    wait_for(lambda: drivers.runs("c"), AT_ONCE_S, "it to run beside the first gang")
    assert max(drivers.allocated().values()) == 1
    drivers.gang("b", 3, template="one")
    wait_for(lambda: drivers.why("b"), AT_ONCE_S, "the second gang to wait again")
    drivers.client.delete(JOBS, "a", drivers.namespace)
    wait_for(lambda: drivers.runs("b"), AT_ONCE_S, "the second gang to run")
    assert max(drivers.allocated().values()) == 1


DEVICE: dict[str, Any] = {
    "attributes": {"model": {"string": "a100"}, "index": {"int": 3}, "ecc": {"bool": True},
        "driverVersion": {"version": "1.10.0"}, "other.example.com/numa": {"int": 1}},
    "capacity": {"memory": {"value": "80Gi"}},
}  # fmt: skip
EXPRESSIONS = (
    'A.model == "a100"', 'A.model in ["h100", "b200"]', "A.index >= 2 && A.index < 3", "!A.ecc || A.index == 3",
    'A.driverVersion.isGreaterThan(semver("1.9.5"))', 'A.driverVersion.compareTo(semver("1.10.0-rc.1")) < 0',
    "A.driverVersion.major() == 1 && A.driverVersion.minor() == 10", 'device.attributes["other.example.com"].numa == 1',
    'has(device.attributes["none.example.com"].x)', '"model" in A && !("serial" in A)',
    'C.memory.isLessThan(quantity("81920Mi"))', 'C.memory.compareTo(quantity("0.5e2G")) > 0 && C.memory.isInteger()',
    'C.memory == quantity("81920Mi")', 'A.model.matches("^a[0-9]+$") && A.model.lowerAscii().startsWith("a")',
    'cel.bind(a, A, a.model == "a100" && a.ecc)', '["a100", "h100"].exists(m, m == A.model)',
    'A.?serial.orValue("none") == "none"', 'device.driver.endsWith("example.com") ? A.index % 2 == 1 : false',
)  # fmt: skip


def test_expressions_mean_to_us_what_they_mean_to_kube_scheduler(drivers: Drivers, wait_for: WaitFor) -> None:
    """A pod for each, of the cluster's own scheduler, beside as many devices as there are pods."""
    copies = [{"name": f"d{index}", **DEVICE} for index in range(len(EXPRESSIONS))]
    drivers.publish("node-0005", *copies)
    ours: dict[str, bool] = {}
    device = Device(
        attributes={
            "model": DeviceAttribute(text="a100"),
            "index": DeviceAttribute(number=3),
            "ecc": DeviceAttribute(flag=True),
            "driverVersion": DeviceAttribute(version="1.10.0"),
            "other.example.com/numa": DeviceAttribute(number=1),
        },
        capacity={"memory": DeviceCapacity(value="80Gi")},
    )
    for number, short in enumerate(EXPRESSIONS):
        expression = short.replace("A.", f'device.attributes["{drivers.driver}"].').replace(
            "C.", f'device.capacity["{drivers.driver}"].'
        )
        expression = expression.replace(" A,", f' device.attributes["{drivers.driver}"],').replace(
            " in A", f' in device.attributes["{drivers.driver}"]'
        )
        name = f"e{number}"
        ours[name] = selector(expression).matches(drivers.driver, device)
        drivers.claim(name, 1, expression)
        spec = {
            "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "devices"}]}}],
            "resourceClaims": [{"name": "devices", "resourceClaimName": name}],
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        drivers.client.create(PODS, body, drivers.namespace)

    def judged() -> dict[str, bool] | None:
        pods = drivers.client.list(PODS, drivers.namespace)
        said = {
            pod.metadata.name: bool(pod.spec.node_name)
            for pod in pods
            if pod.spec.node_name or any(each.type == "PodScheduled" for each in pod.status.conditions)
        }
        return said if len(said) == len(EXPRESSIONS) else None

    theirs = wait_for(judged, AT_ONCE_S, "kube-scheduler to judge every pod")
    assert {EXPRESSIONS[int(name[1:])] for name in ours if ours[name] != theirs[name]} == set()
    assert 0 < sum(ours.values()) < len(ours)
