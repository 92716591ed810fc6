"""Control planes that all workers of a test run share.

The first worker that needs one starts it in the run's folder, the others find it there, and the process that the user
started (pytest itself, or the controller of xdist's workers) ends all of them. `SHARED` serves many tests at once, each
in a namespace of its own; so does `API`, which has an API server only. The planes of `ALONE` serve one test at a time:
tests marked `alone` fill the nodes, change them, or restart processes. Each plane has 8 nodes of 32 CPUs, 256Gi and 8
GPUs, in 2 racks.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import audits
import ordering
import pytest
from cleaning import Baseline
from native_gates import with_gates
from ordering import ALONE, API, SHARED, folder_of_run
from planes import PLANES

from musterctl.plane import state
from musterctl.plane.machine import locked
from musterctl.plane.plane import Plane
from musterctl.plane.process import start_guard
from musterctl.plane.state import API_SERVER, COMPONENTS, ETCD, PlaneOptions

PARTS: Final = {API: (ETCD, API_SERVER)}
"""Parts of a plane, if not all."""
_HELD: Final = pytest.StashKey[dict[str, tuple[Plane, Baseline]]]()
_OWNER: Final = pytest.StashKey["Owner"]()


@contextlib.contextmanager
def one_start_at_a_time(config: pytest.Config) -> Iterator[None]:
    """Wait until no other worker starts a plane: two cores are busy with one."""
    with locked(folder_of_run(config) / "planes.lock"):
        yield


def plane_of(item: pytest.Item, kubernetes: str) -> tuple[Plane, Baseline]:
    """Return the plane of a test, and what it had before anybody used it."""
    return obtain(item.config, ordering.plane_name(item), kubernetes)


def obtain(config: pytest.Config, name: str, kubernetes: str) -> tuple[Plane, Baseline]:
    """Return the run's plane of that name, after starting it if no worker has."""
    if _HELD not in config.stash:
        begin(config)
    held = config.stash[_HELD]
    if name not in held:
        held[name] = _obtain(config, name, kubernetes)
        config.stash[PLANES].append(held[name][0])
    return held[name]


def _obtain(config: pytest.Config, name: str, kubernetes: str) -> tuple[Plane, Baseline]:
    root = folder_of_run(config) / name
    options = PlaneOptions(kubernetes=kubernetes)
    with one_start_at_a_time(config):
        plane = Plane(root, PARTS.get(name, COMPONENTS), options, arguments=with_gates(audits.arguments(root)))
        if not (root / "started").exists():
            plane.start()
            Baseline(plane)
            (root / "started").touch()
    return plane, Baseline(plane)


class Owner:
    """The process that ends the run's planes, however it ends itself."""

    def __init__(self, folder: Path) -> None:
        self._folders = [folder / name for name in (SHARED, API, *ALONE)]
        self._guard: subprocess.Popen[bytes] = start_guard(*self._folders)

    def end(self) -> list[str]:
        """End the planes; return the rights that Muster's processes lacked there, after naming what tests have left."""
        planes = [Plane(folder) for folder in self._folders if state.load(folder) is not None]
        used = [plane for plane in planes if (plane.root / "started").exists()]
        left = [f"{plane.root.name}: a test has left {each}" for plane in used for each in Baseline(plane).left()]
        for plane in planes:
            plane.stop()
        self._guard.communicate()
        sys.stderr.write("".join(f"\n{line}" for line in left))
        missing = [line for plane in planes for line in audits.forbidden(plane)]
        return [f"a right is missing in charts/muster/files/roles: {line}" for line in missing]


def begin(config: pytest.Config) -> None:
    """Make this process the owner of the run's planes, unless it is a worker."""
    config.stash[_HELD] = {}
    if not hasattr(config, "workerinput"):
        config.stash[_OWNER] = Owner(folder_of_run(config))


def end(session: pytest.Session) -> None:
    """End the run's planes in the process that owns them; a right that was missing fails the run."""
    owner = session.config.stash.get(_OWNER, None)
    if owner is None:
        return
    del session.config.stash[_OWNER]
    if wrong := owner.end():
        session.config.get_terminal_writer().line("\n" + "\n".join(wrong))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
