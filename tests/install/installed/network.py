"""The network of the cluster: every node has a namespace of its own, with the bridge of its pods and a cable to all.

As between machines, a packet passes the rules of its sender's node and of its receiver's, and has the address of its
sender. So what a NetworkPolicy lets through here is what it lets through elsewhere: the control plane is a machine
without pods, and no packet of its comes from the node that it goes to. There is no way out of the network.
"""

import subprocess
from pathlib import Path
from typing import Final

from realnode import namespaces
from realnode.namespaces import Place

CONTROL_PLANE: Final = "10.88.0.254"
"""The address of the machine of the control plane, which is this process's namespace; DNS is there, too."""
_FORWARDS: Final = Path("/proc/sys/net/ipv4/ip_forward")
BRIDGED: Final = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
"""Whether iptables sees what goes from port to port of a bridge, as between two pods of a node."""


def place(node: int) -> Place:
    """Where the node of that number is."""
    return Place(_subnet(node), f"10.88.{node}.1", CONTROL_PLANE, ("nsenter", f"--net=/run/netns/{_name(node)}"))


def lay(nodes: int, services: str) -> None:
    """Enters the namespaces of the control plane, and connects it and so many nodes; `services` are in all of them.

    Without a route to the range of Services, a process on a machine is told "network is unreachable" before
    kube-proxy's rules put the address of a pod in its place.
    """
    namespaces.enter(0)
    BRIDGED.write_text("0", encoding="utf-8")  # here the bridge is but the switch between the machines
    _ip("addr", "add", f"{CONTROL_PLANE}/24", "dev", namespaces.BRIDGE)
    for node in range(1, nodes + 1):
        _connect(node)
    for node in range(1, nodes + 1):
        way = (_subnet(node), "via", namespaces.address(node))
        _ip("route", "add", *way)
        for other in set(range(1, nodes + 1)) - {node}:
            _ip("-n", _name(other), "route", "add", *way)
    _ip("route", "add", services, "dev", namespaces.BRIDGE, "src", CONTROL_PLANE)


def _connect(node: int) -> None:
    """Makes the namespace of a node, its cable and its bridge."""
    name, there = _name(node), ("-n", _name(node))
    _ip("netns", "add", name)
    _ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "uplink", "netns", name)
    _ip("link", "set", f"to-{name}", "master", namespaces.BRIDGE, "up")
    # A bridge without an address of its own takes one of its ports', and pods would lose their gateway with that pod.
    _ip(*there, "link", "add", namespaces.BRIDGE, "address", f"0a:58:0a:58:{node:02x}:01", "type", "bridge")
    _ip(*there, "addr", "add", f"{place(node).gateway}/24", "dev", namespaces.BRIDGE)
    _ip(*there, "addr", "add", f"{namespaces.address(node)}/24", "dev", "uplink")
    for device in ("lo", "uplink", namespaces.BRIDGE):
        _ip(*there, "link", "set", device, "up")
    _ip(*there, "route", "add", "default", "via", CONTROL_PLANE)
    subprocess.run([*place(node).enter, "sh", "-c", f"echo 1 >{_FORWARDS} && echo 1 >{BRIDGED}"], check=True)


def _name(node: int) -> str:
    return f"node-{node}"


def _subnet(node: int) -> str:
    return f"10.88.{node}.0/24"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
