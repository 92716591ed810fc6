"""Wire types are ready before there are threads."""

import importlib
import pkgutil
import subprocess
import sys

import msgspec
from msgspec.structs import fields

import muster.api
from muster.api.base import Wire

PROGRAM = """
import sys, threading
import msgspec
from muster.api.kubernetes.core import PodSpec
from muster.api.kubernetes.meta import ObjectMeta

sys.setswitchinterval(1e-6)
barrier = threading.Barrier(4)

def decode():
    barrier.wait()
    msgspec.convert({"containers": [{"name": "a", "env": [{"name": "x"}]}], "affinity": {"nodeAffinity": {}}}, PodSpec)
    msgspec.convert({"ownerReferences": [{"apiVersion": "a", "kind": "b", "name": "c", "uid": "d"}]}, ObjectMeta)

threads = [threading.Thread(target=decode) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_may_decode_a_type_for_the_first_time_together() -> None:
    """A type is learnt when it is first used; two threads doing so at once used to end the process."""
    for _ in range(12):
        result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


def test_a_number_that_is_left_out_is_one_that_may_be_written() -> None:
    """Within the bounds of its field."""
    for module in pkgutil.walk_packages(muster.api.__path__, "muster.api."):
        importlib.import_module(module.name)
    types, found = [Wire], 0
    while types:
        struct = types.pop()
        types += struct.__subclasses__()
        for each in fields(struct):
            if isinstance(each.default, int | float):
                msgspec.convert(each.default, each.type)
                found += 1
    assert found > 50
