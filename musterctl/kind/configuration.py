"""The configuration for kind: one control-plane node, and workers with the labels of racks and blocks.

The fields are those of kind.x-k8s.io/v1alpha4 (https://kind.sigs.k8s.io/docs/user/configuration/).
"""

from typing import Any, Final

import msgspec

from musterctl.plane.install import BLOCK, RACK, run_of
from musterctl.plane.machine import LocalError

_FULL_VERSION: Final = 3
"""Numbers in a whole version: 1.34.2."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a kind cluster."""

    nodes: int = 3
    """Workers, beside the node of the control plane."""
    racks: int = 1
    blocks: int = 1
    kubernetes: str = ""
    """A whole version; empty means that of kind."""


def configuration(wish: Wish) -> dict[str, Any]:
    """The document for `kind create cluster --config`."""
    image = {"image": node_image(wish.kubernetes)} if wish.kubernetes else {}
    workers = [
        {
            "role": "worker",
            **image,
            "labels": {
                RACK: f"rack-{run_of(index, wish.nodes, wish.racks)}",
                BLOCK: f"block-{run_of(index, wish.nodes, wish.blocks)}",
            },
        }
        for index in range(wish.nodes)
    ]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [{"role": "control-plane", **image}, *workers],
    }


def node_image(version: str) -> str:
    """The image of a node of that version, as kind publishes it."""
    numbers = version.removeprefix("v").split(".")
    if len(numbers) != _FULL_VERSION or not all(number.isdigit() for number in numbers):
        raise LocalError(
            f"--kubernetes {version}: kind's images of nodes have whole versions, like 1.34.0; "
            "its release notes list those that there are"
        )
    return f"kindest/node:v{'.'.join(numbers)}"
