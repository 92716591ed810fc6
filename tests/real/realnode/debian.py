"""Root file systems out of Debian's packages, from the mirror that this machine's own sources name."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/include/*")
"""Paths that no program reads when it runs."""
_PASSED_ON = re.compile(r"^(Acquire::(?:https?|Check|Retries)\b.*);$", re.MULTILINE)
"""What of this machine's apt settings says how the mirror is reached, and how old it may be."""
_FIRST = "/usr/bin:/bin:/usr/sbin:/sbin"


class MirrorError(Exception):
    """There is no mirror of Debian among this machine's sources."""


def root_file_system(suite: str, packages: Sequence[str], target: Path, *, hooks: Sequence[str] = ()) -> None:
    """Installs the packages, and what they depend on, into a tar archive; hooks of mmdebstrap's have the last word."""
    settings = _PASSED_ON.findall(_output("apt-config", "dump"))
    excluded = [f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", *excluded]
    command += [f"--aptopt={setting}" for setting in settings]
    command += [f"--customize-hook={hook}" for hook in hooks]
    # mmdebstrap filters the archive with a `python3`, which must be the system's.
    environment = os.environ | {"PATH": f"{_FIRST}:{os.environ['PATH']}"}
    subprocess.run([*command, suite, target, mirror()], check=True, env=environment)


def mirror() -> str:
    """The address of Debian's main archive."""
    listed = _output("apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages")
    found = [line.split()[2] for line in listed.splitlines() if line.startswith("Debian Debian ")]
    if not found:
        raise MirrorError(
            "images are made of Debian's packages, and the sources of this machine's apt name no mirror of Debian "
            "(`apt-get indextargets`); add one and run `apt-get update`"
        )
    return found[0]


def architecture() -> str:
    """This machine's architecture, as Debian and OCI images call it."""
    return _output("dpkg", "--print-architecture").strip()


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
