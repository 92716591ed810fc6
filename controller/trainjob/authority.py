"""The authorities that trainers trust when they report: a file that a kubelet keeps up to date."""

from pathlib import Path
from typing import Final

from controller.trainjob.obstacle import Obstacle

LOOK_AGAIN_S: Final = 300.0
"""How often a TrainJob that runs is looked at, so that its pods get new authorities: long before the old ones end."""


class Authorities:
    """The file, which a fresh installation does not have at once: the controller itself makes what stands in it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pem(self) -> str:
        """What stands in it now. Obstacle if it is not there yet."""
        try:
            return self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = f"the authority of the server that trainers report to cannot be read: {error}"
            raise Obstacle(why) from error
