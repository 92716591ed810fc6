"""A wall clock that a test sets while processes run: the clock of all processes which are started in a block.

`clocks/shift.c` is preloaded. Programs of Kubernetes ask the kernel, not the C library, so their clocks stay right.
"""

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

_SOURCE: Final = Path(__file__).parent / "clocks/shift.c"


class Clock:
    """By how much the processes' clock is off."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.write_bytes(bytes(8))

    def shift(self, seconds: int) -> None:
        """From now on."""
        with self._file.open("r+b", buffering=0) as opened:
            os.pwrite(opened.fileno(), struct.pack("=q", seconds), 0)


@contextmanager
def shifted(folder: Path) -> Iterator[Clock]:
    """Processes that are started in this block have the clock, also after its end."""
    if not shutil.which("cc"):
        pytest.skip("a C compiler is missing: apt-get install gcc")
    library = folder / "shift.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, _SOURCE], check=True)
    clock = Clock(folder / "shift")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(library))
        patch.setenv("MUSTER_CLOCK_SHIFT", str(folder / "shift"))
        yield clock
