"""What holds for all tests.

`make test` is the same on every run: seeds follow from the names of the tests. `make storm` draws new ones, which it
prints (MUSTER_FRESH=1 does so anywhere, MUSTER_SEED=n repeats a run). A seed that once failed stays as a case.

`--part 2/3` runs the second third of the files: CI has time for a part of `make test-long`, and takes each in turn.

A shell that starts us in the background has us ignore SIGINT, and all that we start with us; here it is heard.
"""

import argparse
import importlib
import os
import random
import signal
import sys
import zlib
from collections import Counter
from typing import Any

import ordering
import pytest
from hypothesis import settings
from parts import Part

FRESH = "MUSTER_FRESH" in os.environ
SECONDS: Counter[str] = Counter()
"""How long each test took so far, with its fixtures."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The machine is shared: the duration of an example has no limit. With fixed seeds, repeated runs find nothing new.
settings.register_profile(
    "muster", max_examples=100 if FRESH else 40, deadline=None, derandomize=not FRESH, print_blob=True
)
settings.load_profile("muster")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --part, --store-durations and --shuffle."""
    parser.addoption("--part", type=_part, default=Part(1, 1), metavar="K/N", help="run the Kth of N parts only")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in the random order of this seed")
    parser.addoption("--store-durations", action="store_true", help="store how long each test took")


def _part(text: str) -> Part:
    """The part; its error in words, which argparse only shows of its own kind of error."""
    try:
        return Part.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the files of other parts and orders the rest: last, as other options leave out tests before."""
    files = config.getoption("part").has({item.path for item in items})
    others = [item for item in items if item.path not in files]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item.path in files]
    ordering.arrange(config, items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ordering.GroupScheduling | None:
    """Distributes groups of tests in their order, with `--dist loadgroup`."""
    return ordering.GroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds up the seconds of each test."""
    SECONDS[report.nodeid] += report.duration


def pytest_sessionstart(session: pytest.Session) -> None:
    """Prepares for planes: the controller of xdist's workers loads no conftest of a folder, so this is here."""
    if session.config.getoption("dist", "no") != "no":
        importlib.import_module("sharing").begin(session.config)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stores the durations, where that is asked for, and ends the planes of this run."""
    if "sharing" in sys.modules:
        sys.modules["sharing"].end(session)
    if session.config.getoption("--store-durations") and not hasattr(session.config, "workerinput"):
        ordering.store(SECONDS)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The test's own seed; a new one in the storms; or that of MUSTER_SEED. It is printed."""
    given = os.environ.get("MUSTER_SEED")
    if given:
        chosen = int(given)
    elif FRESH or request.node.get_closest_marker("storm"):
        chosen = random.SystemRandom().randrange(2**32)
    else:
        chosen = zlib.crc32(request.node.nodeid.encode())
    sys.stderr.write(f"\nseed {chosen}\n")
    return chosen
