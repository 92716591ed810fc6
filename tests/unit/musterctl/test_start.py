"""Commands that plan nothing start without the planner, which takes a second of CPU to import."""

import subprocess
import sys

WITHOUT = ("ps", "logs", "nodes", "job", "trainjobs", "queuechange", "history", "usage")
IMPORT = """
import sys, importlib
for name in sys.argv[1:]:
    importlib.import_module(f"musterctl.commands.{name}")
    if "extender.planner.cycle" in sys.modules:
        sys.exit(f"{name} imports the planner")
"""


def test_commands_that_plan_nothing_start_without_the_planner() -> None:
    """A module is imported when its command is used, and all that it imports with it."""
    ran = subprocess.run([sys.executable, "-c", IMPORT, *WITHOUT], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
