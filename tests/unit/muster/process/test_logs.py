"""Every line of a process's log is one JSON object, whoever wrote it."""

import json
import os
import re
import subprocess
import sys

import pytest

EVIL = r"\x1b]0;root\x07\x9b2J\x7f"
"""As a literal of Python has it."""
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


@pytest.mark.parametrize("how", ["json", "console"])
def test_control_characters_of_tenants_do_not_reach_a_terminal(how: str) -> None:
    """In values, messages of libraries and tracebacks, in lines for programs and in those for people."""
    program = PROGRAM.replace("u-1", EVIL).replace("theirs", EVIL)
    program = program.replace("1 / 0", f"raise ZeroDivisionError('{EVIL}')")
    program += f"import threading\ndef ends(): raise ValueError('{EVIL}')\nthread = threading.Thread(target=ends)\n"
    program += f"thread.start()\nthread.join()\nraise SyntaxError('{EVIL}')"
    env = {**os.environ, "MUSTER_LOG": how}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 1
    assert "SyntaxError: " in done.stderr
    assert "ValueError: " in done.stderr
    assert done.stderr.count(r"u009b2J") >= 4
    assert not re.findall(r"[\x07\x7f\x80-\x9f]|\x1b(?!\[[0-9;]*m)", done.stderr)


def test_a_crash_in_native_code_leaves_the_stacks() -> None:
    """The process would end without a word."""
    program = "import ctypes; from muster.process import logs; logs.configure('webhook'); ctypes.string_at(0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr
    assert 'File "<string>", line 1 in <module>' in done.stderr
