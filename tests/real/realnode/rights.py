"""What real nodes need of a machine, and one sentence about what it lacks."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from realnode import cgroups

PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "runc", "ip", "mount", "mmdebstrap", "apt-get")
PACKAGES = ("containerd", "containernetworking-plugins", "iproute2", "mmdebstrap")
"""Debian's packages that bring them."""
_CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
_CNI_PLUGINS = ("bridge", "host-local", "loopback")


@cache
def lacking() -> str:
    """Why there can be no real nodes here and what to do about it, in one sentence; empty if there can be."""
    if os.geteuid() != 0:
        return "real nodes need root, for containers, mounts and control groups: run `make e2e-real` as root"
    if not _isolated():
        return "real nodes need namespaces of their own, and this machine does not let us have them (`unshare`)"
    if not cgroups.writable():
        return f"real nodes need control groups, and there are none below {cgroups.ROOT} that can be written"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if cni_folder() is None:
        missing.append(f"the CNI plugins {', '.join(_CNI_PLUGINS)}")
    if missing:
        return f"real nodes need {', '.join(missing)}: on Debian, `apt-get install {' '.join(PACKAGES)}`"
    return ""


def cni_folder() -> Path | None:
    """Where the CNI plugins are."""
    return next((one for one in _CNI_FOLDERS if all((one / plugin).exists() for plugin in _CNI_PLUGINS)), None)


def _isolated() -> bool:
    """Whether one can have a network and mounts of one's own, with a bridge in it."""
    command = ["unshare", "--net", "--mount", "sh", "-c", "mount --make-rprivate / && ip link add trial type bridge"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
