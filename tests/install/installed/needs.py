"""What the cluster needs of a machine beyond real nodes, and the sentences about what it lacks."""

import shutil
import subprocess
from functools import cache
from typing import Final

from realnode import rights

from installed import network

_PROGRAMS: Final = {
    "podman": "podman", "buildah": "buildah", "iptables": "iptables", "ipset": "ipset", "busybox": "busybox-static"
}  # fmt: skip
"""Programs, and the packages of Debian that bring them."""


@cache
def lacking() -> str:
    """Everything that such a cluster lacks here, and what to do about it; empty if there can be one."""
    missing = {program: package for program, package in _PROGRAMS.items() if shutil.which(program) is None}
    reasons = [rights.lacking()]
    if missing:
        reasons.append(
            f"the cluster needs {', '.join(missing)}: on Debian, `apt-get install {' '.join(missing.values())}`"
        )
    elif not _filters():
        reasons.append("the cluster needs a kernel with IP sets and br_netfilter for NetworkPolicies: `modprobe` both")
    return "; ".join(filter(None, reasons))


def _filters() -> bool:
    """Whether the kernel can do what kube-router asks of it: rules with sets, also for what a bridge carries."""
    rule = "iptables -A FORWARD -m physdev --physdev-is-bridged -m set --match-set trial dst -j REJECT"
    trial = f"test -e {network.BRIDGED} && ipset create trial hash:ip && {rule}"
    return subprocess.run(["unshare", "--net", "sh", "-c", trial], capture_output=True, check=False).returncode == 0
