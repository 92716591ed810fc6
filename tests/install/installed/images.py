"""The images of the cluster, made on this machine: there is no registry."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from realnode import debian, oci

from installed import controlplane
from musterctl.kind import image
from musterctl.plane.binaries import user_cache

RELEASE: Final = Path(os.environ["MUSTER_RELEASE"]).resolve() if "MUSTER_RELEASE" in os.environ else None
"""The folder with the files of a release, which are installed in place of the checkout."""
BUSYBOX: Final = "localhost/busybox:1"
PAUSE: Final = "localhost/pause:1"
MUSTER: Final = "localhost/muster:install"
_BASE: Final = "localhost/muster-base:1"
_BASE_PACKAGES: Final = ("python3", "python3-venv", "python3-pip", "python-is-python3", "ca-certificates")
"""What the Dockerfile needs of its base."""
_CONTENT: Final = (
    "Dockerfile", "pyproject.toml", "setup.py", "requirements.lock", "certs", "charts", "controller", "extender",
    "gangs", "history", "muster", "musterctl", "web", "webhook"
)  # fmt: skip
"""What the Dockerfile copies, but for texts."""
_DIGITS: Final = 12
_EPOCH: Final = "315532800"
"""1980, in seconds since 1970."""
_SUITE: Final = "bookworm"
"""Its Python is that of the lock files."""
_TRUSTED: Final = Path("/etc/ssl/certs/ca-certificates.crt")
"""The authorities that this machine trusts: pip may reach its index through a proxy of its own."""
_PIP: Final = re.compile(r"^(?:global|:env:)\.(index-url|extra-index-url|proxy|timeout)='(.*)'$", re.MULTILINE)
"""What of pip's settings says how an index is reached from here."""
_PATH: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_FOLDERS: Final = {"tmp": 0o1777, "etc": 0o755, "proc": 0o755, "sys": 0o755, "dev": 0o755}


def small(folder: Path) -> list[Path]:
    """Archives of the images that hold one program each: the stock kube-scheduler, a shell, what holds a pod open."""
    busybox = Path(shutil.which("busybox") or "busybox")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    links = [f"bin/{name}" for name in applets if name != "busybox"]
    scheduler = controlplane.program("kube-scheduler")
    name = f"registry.k8s.io/kube-scheduler:{controlplane.version()}"
    return [
        _one(folder, name, scheduler, "usr/local/bin/kube-scheduler", ["kube-scheduler"]),
        _one(folder, BUSYBOX, busybox, "bin/busybox", ["sh"], links),
        _one(folder, PAUSE, busybox, "bin/sleep", ["/bin/sleep", "2147483647"]),  # it is what it is called as
    ]


def _one(folder: Path, name: str, program: Path, path: str, command: Sequence[str], links: Sequence[str] = ()) -> Path:
    """The archive of an image with a program at that path, and links to it."""
    target = folder / f"{name.rpartition('/')[2].partition(':')[0]}.tar"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        layer = Path(scratch) / "layer.tar"
        with tarfile.open(layer, "w") as tar:
            for each, mode in _FOLDERS.items():
                made = tarfile.TarInfo(each)
                made.type, made.mode = tarfile.DIRTYPE, mode
                tar.addfile(made)
            tar.add(program, path)
            for link in links:
                made = tarfile.TarInfo(link)
                made.type, made.linkname = tarfile.SYMTYPE, Path(path).name
                tar.addfile(made)
        oci.write(oci.Content(name, [layer], debian.architecture(), command, _PATH), target)
    return target


def muster() -> Path:
    """The archive of Muster's image: the release's, or one that is built from this checkout as users do it, once."""
    if RELEASE:
        return next(RELEASE.glob("muster-image-*.tar"))
    target = user_cache() / "images" / f"muster-{_checkout()}.tar"
    if target.exists():
        return target
    engine = image.find_engine()
    if not _exists(engine, _BASE):
        _make_base(engine)
    # Builds where the machine lets nobody make other containers; with one time for all commits, what the lock file
    # names is installed once.
    environment = {"BUILDAH_ISOLATION": "chroot", "SOURCE_DATE_EPOCH": _EPOCH}
    build = [sys.executable, "-m", "musterctl.kind.image", f"--base={_BASE}", f"--tag={MUSTER}"]  # as `make image` does
    image.run(build, environment=environment)
    target.parent.mkdir(parents=True, exist_ok=True)
    for old in target.parent.glob("muster-*"):
        old.unlink()
    partial = target.with_suffix(".partial")
    engine("save", "--quiet", "--format=oci-archive", f"--output={partial}", MUSTER)
    partial.rename(target)
    return target


def other_names(archive: Path) -> list[str]:
    """What else an image is called: the pods of tests run Muster's, and a release's has another name."""
    return [MUSTER] if archive.parent == RELEASE else []


def _checkout() -> str:
    """What the image is made of, as a hash."""
    digest = hashlib.sha256(_BASE.encode())
    parts = (image.ROOT / name for name in _CONTENT)
    files = (file for part in parts for file in ([part] if part.is_file() else sorted(part.rglob("*"))))
    for file in files:
        if file.is_file() and file.suffix != ".pyc":
            digest.update(f"{file.relative_to(image.ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:_DIGITS]


def _exists(engine: image.Engine, name: str) -> bool:
    return bool(engine("images", "--quiet", name).strip())


def _make_base(engine: image.Engine) -> None:
    """Debian with its Python, which lets pip install beside Debian's own packages, as the base that users take does."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        settings = image.run([sys.executable, "-m", "pip", "config", "list"])
        lines = [f"{name} = {value}" for name, value in dict(_PIP.findall(settings)).items()]
        config, root = Path(folder) / "pip.conf", Path(folder) / "root.tar"
        config.write_text("\n".join(["[global]", "break-system-packages = true", *lines, ""]), encoding="utf-8")
        hooks = [f"upload {config} /etc/pip.conf", f"upload {_TRUSTED} {_TRUSTED}"]
        debian.root_file_system(_SUITE, _BASE_PACKAGES, root, hooks=hooks)
        engine("import", str(root), _BASE)
