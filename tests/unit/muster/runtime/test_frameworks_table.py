"""docs/frameworks.md is true: each framework, under each owner, with each kind of resources."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import frameworks_world as w
import pytest

from muster.runtime.plugins.mpi_settings import SSH_ARGUMENTS

DOCS = Path(__file__).parents[4] / "docs" / "frameworks.md"


def table(name: str) -> list[list[str]]:
    """The rows of a table in the page, cells without their back quotes; where text stands around them, as they are."""
    text = DOCS.read_text().partition(f"<!-- table: {name} -->\n")[2].partition("\n\n")[0]
    rows = [line.strip()[1:-1].split("|") for line in text.splitlines()[2:]]
    return [[_plain(cell.strip()) for cell in row] for row in rows]


def _plain(cell: str) -> str:
    quoted = re.fullmatch(r"`([^`]*)`", cell)
    return quoted.group(1) if quoted else cell


def asked(form: str) -> tuple[str, dict[str, str]]:
    """Framework and annotations of a form such as `torch, `muster.dev/elastic: 2:4``."""
    framework, _, setting = form.partition(", ")
    key, _, value = setting.strip("`").partition(": ")
    annotations = {key: value} if setting else {}
    return framework, {**annotations, **(w.SECRET if framework == "mpi" else {})}


OWNER_ROWS = {row[0]: row[1:] for row in table("owners")}
FORMS: dict[str, dict[str, str]] = {}
for _row in table("variables"):
    FORMS.setdefault(_row[0], {})
    if _row[1]:
        FORMS[_row[0]][_row[1]] = _row[2]
MINE = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]
PROCESSES = {"8 GPUs, 64 CPUs": ("auto", 8), "2500m CPU": ("3", 1), "nothing": ("1", 1)}


def expected(form: str, owner: str, resources: str, hosts: list[str]) -> dict[str, str]:
    """The variables of the page, with the owner's rank, size and leader."""
    rank, size, leader = OWNER_ROWS[owner]
    processes, devices = PROCESSES[resources]
    values = {
        "<rank>": rank,
        "<size>": size,
        "<leader>": leader,
        "<processes>": processes,
        "<slots>": str(devices),
        "<workers>": str(int(size) * devices),
        "<ssh>": SSH_ARGUMENTS,
        "<hosts>": ",".join(json.dumps(f"{host}:2222") for host in hosts),
        "<index>": rank if rank.isdecimal() else "$(TF_TASK_INDEX)",
    }
    result = {}
    for name, text in FORMS[form].items():
        for key, value in values.items():
            text = text.replace(key, value)  # noqa: PLW2901 - built up step by step
        result[name] = text
    return result


def train_env(form: str, owner: str, resources: str, origin: str) -> dict[str, str]:
    """The variables of a TrainJob of four nodes; `origin` says where resources and variables of the user stand."""
    framework, annotations = asked(form)
    there = {"name": "node", "image": "image"}
    trainer: dict[str, Any] = {"numNodes": 4, "resourcesPerNode": w.RESOURCES[resources]}
    if origin == "runtime":
        del trainer["resourcesPerNode"]
        there |= {"resources": w.RESOURCES[resources], "env": [*MINE, *({"name": each} for each in FORMS[form])]}
    elif origin == "user":
        trainer["env"] = MINE
    job = w.train_job({"annotations": {**annotations, **(_as_node(framework))}}, trainer=trainer)
    spec = {"containers": [there]}
    on = w.mpi_runtime(spec, spec)
    if framework != "mpi":
        on = w.runtime({} if framework == "plain" else {framework: {}}, w.replicated_job("node", "trainer", spec))
    result = w.compiled(job, on, w.TRAIN_JOBS[owner])
    assert not w.errors_of(result)
    return w.env_of(w.pods_of(result, "launcher" if framework == "mpi" else "node")["spec"]["containers"][0])


def _as_node(framework: str) -> dict[str, str]:
    return {"muster.dev/mpi-launcher-as-node": "true"} if framework == "mpi" else {}


def hosts_of(owner: str) -> list[str]:
    """All names of the group, from the name of rank 0 in the page and the owner's way to count."""
    leader = OWNER_ROWS[owner][2]
    if owner.startswith("JobSet, 2"):
        return [f"train-node-{job}-{index}.train" for job, index in product((0, 1), (0, 1))]
    if owner.startswith("LeaderWorkerSet"):
        return [leader, *(f"train-1-{index}.train" for index in (1, 2, 3))]
    if "`master`" in owner:
        return [leader, *(f"train-worker-{index}.train" for index in (0, 1, 2))]
    head, number, tail = re.fullmatch(r"(.*-)(\d+)(\..*)", leader).groups()  # type: ignore[union-attr] # all match
    return [f"{head}{int(number) + index}{tail}" for index in range(4)]


# No runtime has a policy for tensorflow: it is for labelled pods only.
CASES = [
    (form, owner) for form, owner in product(FORMS, OWNER_ROWS) if not (owner in w.TRAIN_JOBS and form == "tensorflow")
]


@pytest.mark.parametrize(("form", "owner"), CASES)
def test_each_combination_is_as_documented(form: str, owner: str) -> None:
    """Exactly the variables of the page, with exactly these values, in their order, beside variables of the user, too.

    A runtime has resources and stale values. Labelled pods have none: their template says the very same already.
    """
    for resources, origin in product(w.RESOURCES, ("nothing else", "user", "runtime")):
        is_as_documented(form, owner, resources, origin)


def is_as_documented(form: str, owner: str, resources: str, origin: str) -> None:
    """Compare the variables of one combination with the page."""
    framework, annotations = asked(form)
    wanted = expected(form, owner, resources, hosts_of(owner))
    mine = {} if origin == "nothing else" else {"A": "1", "B": "$(A)"}
    if owner in w.TRAIN_JOBS:
        assert list(train_env(form, owner, resources, origin).items()) == [*wanted.items(), *mine.items()]
        return
    pods = w.template(framework, annotations, w.RESOURCES[resources])
    pods["spec"]["containers"][0]["env"] = list(MINE) if mine else []
    group = w.OWNERS[owner](pods)
    if origin == "runtime":
        given = {name: text for name, text in wanted.items() if not text.startswith("metadata.")}
        group.pod["spec"]["containers"][0]["env"] += [{"name": name, "value": text} for name, text in given.items()]
    result = w.shaped(group)
    if owner.startswith("Pod") and framework in {"tensorflow", "mpi"}:
        assert "requires the names of all pods" in str(result.errors[0])
        return
    assert not result.errors
    assert result.env == {**mine, **wanted}
    assert list(result.env)[: len(mine)] == [*mine]


@pytest.mark.parametrize("row", table("processes"), ids=lambda row: f"{row[0]} {row[1]}")
@pytest.mark.parametrize("column", range(3), ids=list(w.RESOURCES))
def test_processes_in_each_pod(row: list[str], column: int) -> None:
    """The number that the framework is told, or a refusal with the path of the annotation."""
    framework, annotations = asked(row[0])
    number, wanted = row[1], row[2 + column]
    if number:
        annotations["muster.dev/nproc-per-node"] = number
    resources = list(w.RESOURCES.values())[column]
    result = w.shaped(w.OWNERS["Indexed Job `train`"](w.template(framework, annotations, resources)))
    if wanted == "refused":
        assert [error.path for error in result.errors] == ["metadata.annotations[muster.dev/nproc-per-node]"]
        return
    torch = result.env.get("PET_NPROC_PER_NODE", result.env.get("LOCAL_RANK") and "1")
    xgboost = str(int(result.env.get("DMLC_NUM_WORKER", "0")) // 4)
    told = {"torch": torch, "mpi": result.env.get("OMPI_MCA_orte_set_default_slots"), "xgboost": xgboost}
    assert told[framework] == wanted


def test_every_owner_is_in_the_page() -> None:
    """No owner without a row, no row without an owner."""
    assert set(OWNER_ROWS) == {*w.OWNERS, *w.TRAIN_JOBS}
