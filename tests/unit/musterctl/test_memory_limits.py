"""Caches that a tenant fills fit the memory that the chart gives a process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from muster.resources.quantity import parse

ROOT = Path(__file__).parents[3]
VALUES = yaml.safe_load((ROOT / "charts/muster/values.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("process", ["webhook", "controller"])
def test_megabytes_of_short_arguments_fit_the_limit(process: str) -> None:
    """25 of them in each kind; in Python they would be 290."""
    limit = parse(VALUES[process]["resources"]["limits"]["memory"])
    child = ROOT / "tests/unit/worlds/filled_caches.py"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(child.parent)])}
    ended = subprocess.run(
        [sys.executable, child, process, str(limit)], capture_output=True, text=True, env=environment, check=False
    )
    assert ended.stdout == "filled", ended.stderr
