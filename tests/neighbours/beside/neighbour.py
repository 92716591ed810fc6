"""A neighbour's program as a process of a plane."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess

_LOG_LINES = 25


class Neighbours:
    """The neighbours of one test module."""

    def __init__(self) -> None:
        self._parts: list[PlaneProcess] = []

    def start(self, plane: Plane, name: str, program: Path, arguments: Sequence[str]) -> PlaneProcess:
        """Starts a program in the plane's folder, with its log there; what it needs must be installed before."""
        part = PlaneProcess(name, plane.root, lambda: [str(program), *arguments])
        self._parts.append(part)
        part.start()
        return part

    def restart(self, name: str) -> None:
        """Kills the program of this name at whatever instruction it is, and starts it again."""
        [part] = [each for each in self._parts if each.name == name]
        part.kill()
        part.start()

    def sections(self) -> Iterable[tuple[str, str]]:
        """The tail of each one's log, for the reports of failing tests."""
        return [(f"{part.name} ({part.word})", part.log_tail(_LOG_LINES)) for part in self._parts]

    def stop(self) -> None:
        """Ends all of them."""
        for part in self._parts:
            part.stop()
