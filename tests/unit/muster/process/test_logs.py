"""Every line of a process's log is one JSON object, whoever wrote it."""

import json
import subprocess
import sys

PROGRAM = """
import logging
import structlog
from muster.process import logs

log = structlog.get_logger()
logs.configure("webhook", "info")
log.debug("not shown")
log.info("ours", uid="u-1", weird={1, }, path=object)
logging.getLogger("urllib3").warning("theirs %s", 7)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
"""


def test_lines_of_ours_and_of_libraries_are_json_with_the_process_name() -> None:
    """Our lines and those of `logging` carry level, time and process; values that are not JSON do no harm."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["event"], line["level"], line["process"]) for line in lines] == [
        ("ours", "info", "webhook"),
        ("theirs 7", "warning", "webhook"),
        ("failed", "error", "webhook"),
    ]
    assert lines[0]["uid"] == "u-1"
    assert "ZeroDivisionError" in lines[2]["exception"]
    assert all("timestamp" in line for line in lines)


def test_a_crash_in_native_code_leaves_the_stacks() -> None:
    """The process would end without a word."""
    program = "import ctypes; from muster.process import logs; logs.configure('webhook'); ctypes.string_at(0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr
    assert 'File "<string>", line 1 in <module>' in done.stderr
