"""Would Muster be cheaper on kube-scheduler's own way for gangs (docs/native-podgroups.md)? 30 gangs of 100 pods.

`barrier`: as Muster runs. `group cycle`: kube-scheduler takes the pods of a gang in one go, as its gate is on and their
native PodGroup is published; Muster's extender filters and binds as ever. `native barrier`: so too, but a plugin of
kube-scheduler's holds the pods of a gang together and it binds them itself: Muster only plans and pins.
"""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from musterctl.chart import files
from musterctl.plane.plane import Plane
from musterctl.plane.state import API_SERVER, CONTROLLER_MANAGER, MUSTER_SCHEDULER
from tests.bench.peers.kubernetes import GATES
from tests.bench.throughput import NODE_COUNT, PARTS, Run, make_nodes, measure, warm_up

GANGS, MEMBERS = 30, 100
SERVED = (GATES, "--runtime-config=scheduling.k8s.io/v1beta1=true")
_NATIVE = {API_SERVER: SERVED, CONTROLLER_MANAGER: (GATES,), MUSTER_SCHEDULER: (GATES,)}
SIDES: Mapping[str, Mapping[str, tuple[str, ...]]] = {"barrier": {}, "group cycle": _NATIVE, "native barrier": _NATIVE}


def run() -> Iterator[Run]:
    """Each side on a plane of its own."""
    for side, arguments in SIDES.items():
        yield measured(side, {part: list(each) for part, each in arguments.items()})


def measured(side: str, arguments: dict[str, list[str]]) -> Run:
    """One side."""
    with tempfile.TemporaryDirectory() as folder:
        plane = Plane(Path(folder) / "plane", PARTS, bound=True, arguments=arguments)
        with plane:
            if side == "native barrier":
                arguments[MUSTER_SCHEDULER].append(f"--config={_with_native_barrier(plane)}")
                plane.restart(MUSTER_SCHEDULER)
            client = plane.client()
            make_nodes(client, NODE_COUNT)
            warm_up(plane, client)
            return measure(plane, client, GANGS, MEMBERS)._replace(what=f"{side}, {GANGS} Jobs x {MEMBERS} pods")


def _with_native_barrier(plane: Plane) -> Path:
    """Muster's kube-scheduler with the plugin that keeps gangs together, and without Muster's binding."""
    at, kubeconfig = plane.commandlines.extender(), plane.commandlines.kubeconfig(MUSTER_SCHEDULER)
    config: dict[str, Any] = files.kube_scheduler(kubeconfig=str(kubeconfig), extender=at)
    config["extenders"] = [each for each in config["extenders"] if "bindVerb" not in each]
    for profile in config["profiles"]:
        plugins = profile["plugins"]["multiPoint"]
        plugins["disabled"] = [each for each in plugins["disabled"] if each["name"] != "GangScheduling"]
    path = plane.root / "native-barrier.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path
