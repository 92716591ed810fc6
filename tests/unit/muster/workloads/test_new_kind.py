"""A new kind of workload is one file, with its functions, and one row of the table."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "worlds" / "invented_table.py"


def test_pods_of_an_invented_kind_are_a_gang() -> None:
    """To admission, the controller, the planner and a simulation, none of which knows the kind.

    In a process of its own: the table is read when its module is imported, and there is one.
    """
    told = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, PROGRAM], env=told, capture_output=True, text=True, check=False, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
