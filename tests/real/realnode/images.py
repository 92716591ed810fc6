"""The images of the tests, made once of Debian's packages into the user's cache."""

import hashlib
import io
import json
import shutil
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from musterctl.plane.binaries import user_cache
from musterctl.plane.machine import locked
from realnode import debian, oci

_PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_IDLE = ("/bin/sleep", "2147483647")
"""What containers do without a command: nothing, for 68 years."""


class Patch(NamedTuple):
    """Text of a file that is replaced by another."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Image:
    """An image by its recipe. Its tag is not `latest`, so kubelet takes it from the node and never pulls it."""

    name: str
    suite: str
    """Of Debian."""
    packages: tuple[str, ...]
    patches: tuple[Patch, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def archive(self) -> Path:
        """The image as an OCI archive, made now if this recipe was not made yet."""
        recipe = json.dumps([asdict(self), debian.LEFT_OUT, _IDLE, _PATH]).encode()
        target = user_cache() / "images" / f"{hashlib.sha256(recipe).hexdigest()}.tar"
        if not target.exists():
            with locked(target.with_suffix(".lock")):
                if not target.exists():  # another process may have made it while we waited
                    self._make(target)
        return target

    def _make(self, target: Path) -> None:
        """Makes everything beside the archive, then gives it its name."""
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        sys.stderr.write(f"image {self.name}: made once of Debian's packages (some minutes) into {target}\n")
        root = partial / "root.tar"
        debian.root_file_system(self.suite, self.packages, root)
        layers = [root]
        if self.patches:
            layers.append(partial / "patches.tar")
            patch(root, self.patches, layers[-1])
        environment = _PATH | self.environment
        oci.write(oci.Content(self.name, layers, debian.architecture(), _IDLE, environment), partial / "image.tar")
        (partial / "image.tar").rename(target)
        shutil.rmtree(partial)


def patch(root: Path, patches: Sequence[Patch], target: Path) -> None:
    """Writes a layer that holds the patched files of the root file system."""
    with tarfile.open(root) as lower, tarfile.open(target, "w") as upper:
        for path in dict.fromkeys(one.path for one in patches):
            member = lower.getmember(f".{path}")
            file = lower.extractfile(member)
            text = file.read().decode() if file else ""
            for one in patches:
                if one.path == path and one.old not in text:
                    raise ValueError(f"{path} does not hold what is to be replaced: {one.old!r}")
                if one.path == path:
                    text = text.replace(one.old, one.new)
            member.size = len(text.encode())
            upper.addfile(member, io.BytesIO(text.encode()))


MPI = Image(
    "localhost/mpi:1", "bookworm", ("python3", "python3-mpi4py", "openmpi-bin", "openssh-server", "openssh-client")
)
"""Open MPI 4 and sshd as Debian configures it; also what is used where any image will do."""

_DISTRIBUTED = "/usr/lib/python3/dist-packages/torch/distributed"
TORCH = Image(
    "localhost/torch:1",
    "trixie",
    ("python3", "python3-torch", "python3-numpy"),
    # Debian builds PyTorch 2.6 without libuv, and two stores of torchrun ask for it all the same.
    patches=(
        Patch(
            f"{_DISTRIBUTED}/elastic/rendezvous/static_tcp_rendezvous.py",
            "                multi_tenant=True,\n            )",
            "                multi_tenant=True,\n                use_libuv=False,\n            )",
        ),
        Patch(
            f"{_DISTRIBUTED}/rendezvous.py",
            "            is_master=False,\n            timeout=timeout,\n        )",
            "            is_master=False,\n            timeout=timeout,\n            use_libuv=use_libuv,\n        )",
        ),
    ),
    environment={"USE_LIBUV": "0"},
)
"""PyTorch without CUDA, with gloo and torchrun."""
