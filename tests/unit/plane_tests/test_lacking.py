"""A run in which all tests were skipped does not pass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SKIPPED = "import pytest\n\n\n@pytest.mark.skip(reason='install a moon')\ndef test_moon():\n    pass\n"
PASSES = "\n\ndef test_sun():\n    pass\n"
FAILS = "\n\ndef test_sun():\n    raise OSError\n"


@pytest.mark.parametrize("verbosity", ["--verbosity=0", "--quiet"])
@pytest.mark.parametrize(("more", "code"), [("", 2), (PASSES, 0), (FAILS, 1)], ids=["alone", "passes", "fails"])
def test_nothing_is_tested(tmp_path: Path, more: str, code: int, verbosity: str) -> None:
    """It ends with 2, and says in one line what is missing; but only if there was nothing else."""
    (tmp_path / "test_all.py").write_text(SKIPPED + more)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    path = os.pathsep.join(map(str, (ROOT / "tests" / "plane", ROOT / ".ci")))
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "lacking", "-p", "no:cacheprovider", verbosity, tmp_path],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code, ended.stdout
    assert ("nothing is tested: install a moon" in ended.stdout.splitlines()) == (code == 2)
