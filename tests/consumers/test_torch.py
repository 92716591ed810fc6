"""The real `torchrun` of PyTorch forms the right world from what Muster puts into the pods, run as local processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from frameworks_world import RESOURCES, Group, template
from mpi_world import CONSUMERS, UNSHARE, isolated
from test_torchrun import GROUPS, container_env
from torchrun_world import FLAGS, VALUES

pytestmark = pytest.mark.consumer

ROOT = CONSUMERS / "torch"
LIBRARIES = ("usr/lib", *(f"{head}/{os.uname().machine}-linux-gnu{tail}" for head, tail in (
    ("usr/lib", ""), ("lib", ""), ("usr/lib", "/blas"), ("usr/lib", "/lapack"),
)))  # fmt: skip
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "usr/lib/python3/dist-packages"),
               "LD_LIBRARY_PATH": ":".join(str(ROOT / each) for each in LIBRARIES), "OMP_NUM_THREADS": "1"}  # fmt: skip
TIMEOUT_S = 90
NEWER = {"LOCAL_ADDR"}
"""Options that PyTorch has got since the one of Debian."""

DUMP = """
import json
from torch.distributed.argparse_util import check_env, env
from torch.distributed.run import get_args_parser
actions = get_args_parser()._actions
values = {each.dest.upper(): [(each.type or str).__name__, each.default] for each in actions if isinstance(each, env)}
print(json.dumps([values, [each.dest.upper() for each in actions if isinstance(each, check_env)]]))
"""


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    """PyTorch is where `make consumers` puts it, if Debian has it for this Python."""
    if not isolated():
        pytest.skip("this machine does not let us have namespaces (unshare), where pods have host names of their own")
    if sys.version_info[:2] != (3, 11) or not ROOT.exists():
        pytest.skip("Debian's PyTorch is not here: it is for Python 3.11, and `make consumers` unpacks it with apt-get")


def world(groups: list[Group], folder: Path) -> list[tuple[int, int, int]]:
    """(rank, world size, local rank) of every process of all pods; each pod has an address of its own."""
    pods, hosts = [], ["127.0.0.1 localhost"]
    for number, group in enumerate(groups):
        env = container_env(group)
        leader = env.get("MASTER_ADDR") or env.get("PET_MASTER_ADDR") or env["PET_RDZV_ENDPOINT"].partition(":")[0]
        name = f"pod-{number}.pods" if number else leader
        short = name.partition(".")[0]
        hosts.append(f"127.0.0.{number + 2} {name} {short}")
        pods.append({"host": short, "env": env, "python": "RANK" in env})
    (folder / "hosts").write_text("\n".join(hosts) + "\n")
    agents = [sys.executable, str(Path(__file__).with_name("torch_agents.py"))]
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    done = subprocess.run(["unshare", "--net", *UNSHARE, "bash", "-c", script, str(folder / "hosts"), *agents],
                          input=json.dumps(pods), env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S,
                          check=False)  # fmt: skip
    assert not done.returncode, done.stderr[-3000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    return sorted((int(line[1]), int(line[2]), int(line[3])) for line in lines if line[:1] == ["rank"])


@pytest.mark.parametrize("owner", GROUPS)
def test_torchrun(owner: str, tmp_path: Path) -> None:
    """Four pods of three processes each: bare torchrun gives out twelve ranks."""
    groups = GROUPS[owner](template("torch", {}, RESOURCES["2500m CPU"]))
    assert world(groups, tmp_path) == [(rank, 12, rank % 3) for rank in range(12)]


@pytest.mark.parametrize("owner", ["Indexed Job", "Volcano Job of two tasks"])
def test_elastic(owner: str, tmp_path: Path) -> None:
    """By c10d, with fewer pods than the most: they meet at the leader's name."""
    groups = GROUPS[owner](template("torch", {"muster.dev/elastic": "2:4"}, {}))
    assert world(groups, tmp_path) == [(rank, 4, 0) for rank in range(4)]


@pytest.mark.parametrize("owner", ["Indexed Job", "JobSet of two Jobs", "StatefulSet from ordinal 5"])
def test_python(owner: str, tmp_path: Path) -> None:
    """Without torchrun: `init_process_group` and a sum over all ranks."""
    groups = GROUPS[owner](template("torch", {"muster.dev/torch-env": "python"}, {}))
    assert world(groups, tmp_path) == [(rank, 4, 0) for rank in range(4)]


def test_the_table_of_options_is_the_parsers() -> None:
    """What the tests without PyTorch take for its options is what its own argument parser reads."""
    dump = subprocess.run([sys.executable, "-c", DUMP], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    values, flags = json.loads(dump.stdout)
    ours = {name: [kind.__name__, default] for name, (kind, default) in VALUES.items() if name not in NEWER}
    ours["MASTER_PORT"][1] = values["MASTER_PORT"][1]  # None in newer ones, where the port follows later
    assert {name: values[name] for name in ours} == ours
    assert set(flags) <= set(FLAGS)
