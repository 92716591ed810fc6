"""A small cluster with racks in blocks, for tests of the topology plugin."""

from collections.abc import Mapping
from typing import Any

from extender_world import World, slots

from extender.planner.plugins.topology import TopologyPlugin
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy

LEVELS = ["block", "rack", "host"]


class Racks(World):
    """Nodes `b0r1n2`: block 0, rack 1, node 2, with 8 GPUs each."""

    def __init__(
        self, blocks: int = 2, racks: int = 2, nodes: int = 2, *, checked: bool = True, **arguments: Any
    ) -> None:
        super().__init__(checked=checked)
        self.topology = TopologyPlugin({"levels": LEVELS} | arguments)
        self.plugins = [*self.plugins, self.topology]
        for block in range(blocks):
            for rack in range(racks):
                for number in range(nodes):
                    self.rack_node(block, rack, number)

    def rack_node(self, block: int, rack: int, number: int, *, gpus: int = 8) -> None:
        """One node with its labels."""
        name = f"b{block}r{rack}n{number}"
        self.node(name, gpus=gpus, cpu=64, labels={"block": f"b{block}", "rack": f"r{rack}", "host": name})

    def asks(
        self, name: str, pods: int, gpus: int = 8, *, required: str = "", preferred: str = "",
        template: Mapping[str, str] | None = None, network: NetworkTopology | None = None,
        policies: list[SubGroupPolicy] | None = None, **more: Any,
    ) -> str:  # fmt: skip
        """A gang of one task that asks for a topology; `template` has annotations of its pods."""
        key = self.gang(name, {"worker": (pods, {"nvidia.com/gpu": gpus})}, **more)
        said = {"muster.dev/topology-required": required, "muster.dev/topology-preferred": preferred}
        self.said_of(key, {key: text for key, text in said.items() if text}, network, policies or [])
        if template:
            self.annotate_templates(key, {"worker": template})
        return key

    def workers(self, name: str, pods: int, gpus: int = 8, **more: Any) -> list[str]:
        """The nodes that such a gang gets by one cycle, by rank; empty if it waits."""
        key = self.asks(name, pods, gpus, **more)
        self.plan()
        return self.placed(key).get("worker", [])

    def said_of(
        self, key: str, annotations: Mapping[str, str], network: NetworkTopology | None = None,
        policies: list[SubGroupPolicy] | None = None,
    ) -> None:  # fmt: skip
        """Puts wishes on a gang's PodGroup."""
        group = self.state.groups[key]
        group.metadata.annotations = {**group.metadata.annotations, **annotations}
        group.spec.network_topology = network
        group.spec.sub_group_policy = policies or []
        self.state.on_pod_group(group, group)

    def annotate_templates(self, key: str, annotations: Mapping[str, Mapping[str, str]]) -> None:
        """Puts annotations on the templates of a gang's Job, by task."""
        job = self.job_of(key)
        for task in job.spec.tasks:
            task.template = {**task.template, "metadata": {"annotations": dict(annotations.get(task.name, {}))}}
        self.state.on_job(None, job)

    def forget(self, key: str) -> None:
        """A gang is gone, with its Job and its placement."""
        for each in (self.state.placements.get(key), self.job_of(key), self.state.groups[key]):
            if each is not None:
                self.notify(each, None)

    def placed(self, key: str) -> dict[str, list[str]]:
        """Pod set → node of each rank, as the gang's placement has it; empty if it has none."""
        placement = self.state.placements.get(key)
        return slots(placement) if placement else {}


def racks_with(*nodes: int) -> Racks:
    """One block of racks, each with so many nodes."""
    world = Racks(0)
    for rack, count in enumerate(nodes):
        for number in range(count):
            world.rack_node(0, rack, number)
    return world


def racks_of(nodes: list[str]) -> list[str]:
    """The rack of each node, `b0r1`."""
    return [node[: node.index("n")] for node in nodes]
