"""The authorities that trainers trust when they report: a file that a kubelet keeps up to date."""

from pathlib import Path
from typing import Final

from controller.trainjob.obstacle import Obstacle

LOOK_AGAIN_S: Final = 300.0
"""Time between passes over a running TrainJob, which give its pods new authorities long before the old ones expire."""


class Authorities:
    """The file, which is missing in a fresh installation at first: the controller itself makes its content."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pem(self) -> str:
        """The certificates in it now. Obstacle if the file cannot be read yet."""
        try:
            return self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = f"the authority of the server that trainers report to cannot be read: {error}"
            raise Obstacle(why) from error
