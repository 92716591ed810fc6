"""How long single turns of the event loops take in a plane's processes, measured by `instrumented/sitecustomize.py`."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_INSTRUMENTED = Path(__file__).parent / "instrumented"
BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100)


@contextlib.contextmanager
def measured(folder: Path) -> Iterator[None]:
    """Measures all Python processes that are started during the block, and prints each one's turns in the end."""
    folder.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_INSTRUMENTED), prepend=":")
        patch.setenv("MUSTER_TURNS", str(folder))
        yield
    for file in sorted(folder.glob("*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        labels = [*(f"≤ {bound} ms" for bound in BOUNDS_MS), "more"]
        counts = ", ".join(f"{label}: {count}" for label, count in zip(labels, told["counts"], strict=True))
        command = " ".join(told["command"][1:4])
        sys.stderr.write(f"{command}, CPU time of single turns of the loop: {counts}\n")
        for took_ms, name in told["longest"]:
            sys.stderr.write(f"  {took_ms:5.1f} ms {name}\n")
