"""What holds for all tests.

`make test` is the same on every run: seeds follow from the names of the tests. `make storm` draws new ones, which it
prints (MUSTER_FRESH=1 does so anywhere, MUSTER_SEED=n repeats a run). A seed that once failed stays as a case.

`--part 2/3` runs the second third of the files: CI has time for a part of `make test-long`, and takes each in turn.

A shell that starts us in the background has us ignore SIGINT, and all that we start with us; here it is heard.
"""

import argparse
import os
import random
import signal
import sys
import zlib

import pytest
from hypothesis import settings
from parts import Part

FRESH = "MUSTER_FRESH" in os.environ

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The machine is shared: how long an example takes says nothing.
settings.register_profile("muster", deadline=None, derandomize=not FRESH, print_blob=True)
settings.load_profile("muster")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --part."""
    parser.addoption("--part", type=_part, default=Part(1, 1), metavar="K/N", help="run the Kth of N parts only")


def _part(text: str) -> Part:
    """The part; its error in words, which argparse only shows of its own kind of error."""
    try:
        return Part.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the files of other parts, of those that the other options leave: so this comes last."""
    files = config.getoption("part").has({item.path for item in items})
    others = [item for item in items if item.path not in files]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item.path in files]


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
