"""What the cluster needs of a machine beyond real nodes, and one sentence about what it lacks."""

import shutil
from functools import cache
from typing import Final

from realnode import rights

_PROGRAMS: Final = {"podman": "podman", "buildah": "buildah", "iptables": "iptables", "busybox": "busybox-static"}
"""Programs, and the packages of Debian that bring them."""


@cache
def lacking() -> str:
    """Why there can be no such cluster here and what to do about it, in one sentence; empty if there can be."""
    missing = {program: package for program, package in _PROGRAMS.items() if shutil.which(program) is None}
    reason = rights.lacking()
    if reason or not missing:
        return reason
    return f"the cluster needs {', '.join(missing)}: on Debian, `apt-get install {' '.join(missing.values())}`"
