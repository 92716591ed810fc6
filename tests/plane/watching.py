"""Records of what a watch tells, which are `with` statements: their caches are in sync before anything happens."""

from typing import Any, Self

from muster.kube.reflector import Reflector


class Watching:
    """Starts reflectors, and stops them in the end."""

    def __init__(self, *reflectors: Reflector[Any]) -> None:
        self._watched = reflectors

    def __enter__(self) -> Self:
        for reflector in self._watched:
            reflector.start()
            assert reflector.wait_synced(10)
        return self

    def __exit__(self, *_: object) -> None:
        for reflector in self._watched:
            reflector.stop()
