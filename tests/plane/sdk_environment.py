"""The Python that has Kubeflow's SDK: an environment of its own in the user's cache, made when a test first needs it.

The SDK wants an older Python client of Kubernetes than Muster has, so the two cannot share one. Its lock is
`sdk/requirements.txt` (`make lock` renews it); the folder is named after its content.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from musterctl.plane.binaries import user_cache
from musterctl.plane.machine import locked

LOCK = Path(__file__).parent / "sdk" / "requirements.txt"


def python() -> Path:
    """The interpreter of the environment, which is made if this lock has none yet. It takes seconds, and a network."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = user_cache() / "sdk" / f"{hashlib.sha256(LOCK.read_bytes()).hexdigest()}-{version}"
    if not folder.exists():
        with locked(folder.with_suffix(".lock")):
            if not folder.exists():  # another worker may have made it while we waited
                _make(folder)
    return folder / "bin" / "python"


def _make(folder: Path) -> None:
    """Installs everything before the folder gets its name; the interpreter does not mind being moved."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", partial], check=True)
    pip = [partial / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    installed = subprocess.run(
        [*pip, "--require-hashes", "--requirement", LOCK], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        raise RuntimeError(f"Kubeflow's SDK cannot be installed into {folder}: {installed.stderr.strip()[-2000:]}")
    partial.rename(folder)
