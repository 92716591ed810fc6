"""Each name in back quotes on a page of the documentation exists: metrics, files, modules, values, settings, flags."""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from musterctl import facts
from musterctl.chart.generated import leaves, schema
from tests.mutants.clones import PACKAGES

ROOT = Path(__file__).parents[3]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FOLDERS = (*PACKAGES, "charts", "docs", "examples", "tests")
METRIC = re.compile(r"\b(?P<name>muster_[a-z_]+)(?:\{(?P<labels>[^}]*)\})?")
NO_PROSE = re.compile(r"```.*?```|<!--fact.*?/fact-->", re.DOTALL)
"""Blocks of code, and facts, which come from the code."""
CODE = re.compile(r"`([^`]+)`")
WORD = re.compile(r"[a-z]+(?:[A-Z]\w*)+|[A-Z][a-z]+(?:[A-Z]\w*)+|[a-z]+(?:_[a-z0-9]+)+|[A-Z]+(?:_[A-Z]+)+|--[a-z-]+")
"""Names that are of a program: fields, kinds, variables, arguments, flags."""

SLURM = """
    --account --array --constraint --container-image --cpu-bind --cpus-per-task --dependency --error --exclude
    --exclusive --export --gpus-per-node --gres --hold --job-name --license --mail-type --mem --nice --no-requeue
    --nodelist --ntasks --ntasks-per-node --open-mode --partition --qos --requeue --signal --switches
    SLURM_ARRAY_TASK_ID SLURM_JOB_ID SLURM_LOCALID SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_NTASKS SLURM_PROCID
"""
OF_OTHERS = {
    **dict.fromkeys(SLURM.split(), "a directive or variable of Slurm"),
    "--nnodes": "a flag of torchrun",
    "--nproc-per-node": "a flag of torchrun",
    "--override-type": "a flag of kubectl",
    "--overrides": "a flag of kubectl",
    "ETCDCTL_CACERT": "a variable of etcdctl",
    "ETCDCTL_ENDPOINTS": "a variable of etcdctl",
    "DataCacheInitializer": "a class of Kubeflow's SDK",
    "ElasticJobSet": "a feature gate of JobSet",
    "StrictModes": "an option of sshd",
    "PodGroupPreemptionPolicy": "a feature gate of Kubernetes",
    "TopologyAwareWorkloadScheduling": "a feature gate of Kubernetes",
    "WorkloadAwarePreemption": "a feature gate of Kubernetes",
    "batchScheduler": "a field of a SparkApplication, and a value of KubeRay's chart",
    "batchSchedulerOptions": "a field of a SparkApplication",
    "allowedTopologies": "a field of a StorageClass that the planner does not read",
    "cpuManagerPolicy": "a field of the kubelet's configuration",
    "expireAfter": "a field of Karpenter's NodePool",
    "get_job_events": "a method of Kubeflow's SDK",
    "gangSchedulingManagement": "a field of LeaderWorkerSet's configuration",
    "init_process_group": "a function of torch",
    "manageJobsWithoutQueueName": "a field of Kueue's configuration",
    "managedJobsNamespaceSelector": "a field of Kueue's configuration",
    "nominatedNodeName": "a field of a pod that Volcano writes",
    "overQuotaWeight": "a field of KAI-Scheduler's queues",
    "rolloutStrategy": "a field of a LeaderWorkerSet that Muster does not read",
    "waitForPodsReady": "a field of Kueue's configuration",
    "web.crt": "a key of the Secret with certificates, which the code puts together",
    "web.key": "as web.crt",
    "workerLostTimeout": "a field of Kueue's configuration",
    "--enable-provisioning-requests": "a flag of cluster-autoscaler",
    "--gang-scheduler-name": "a flag of training-operator",
    "--gang-scheduling": "a flag of mpi-operator",
    "--flag": "stands for any flag of a job plugin",
    "--kube-api-content-type": "a flag of cluster-autoscaler",
    "--skip-nodes-with-custom-controller-pods": "a flag of cluster-autoscaler",
    "--ssh-key-type": "a flag of a job plugin, which the code has without the dashes",
    "terminationGracePeriod": "a field of Karpenter's NodePool",
    "scheduler.extraVolumes": "a field of kubeadm's configuration",
    "muster.workload": "an attribute of traces",
}
"""Names that are not to be found in Muster's code as they stand on the pages, each with the reason."""


def spans(page: Path) -> set[str]:
    """The texts in back quotes in the prose of a page."""
    return {text.replace("\n", " ") for text in CODE.findall(NO_PROSE.sub("", page.read_text(encoding="utf-8")))}


@cache
def source() -> str:
    """Muster's code and its chart."""
    files = [path for one in PACKAGES for ending in ("py", "yaml") for path in (ROOT / one).rglob(f"*.{ending}")]
    files += [path for path in (ROOT / "charts").rglob("*") if path.suffix in {".json", ".tpl", ".txt", ".yaml"}]
    files += [ROOT / "muster/crds/core.json", *(ROOT / "docs").glob("*-example/*.py")]
    files += [*(ROOT / "tests").glob("*.py"), *(ROOT / "tests/bench").glob("*.py"), ROOT / "tests/plane/conftest.py"]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@cache
def source_words() -> frozenset[str]:
    """The words and flags of the code, in lower case, and fields as they are on the wire."""
    words = set(re.findall(r"--[a-z][a-z-]+|\w+", source().lower()))
    return frozenset(words | {word.replace("_", "") for word in words} | {word.removesuffix("_s") for word in words})


@cache
def is_key(name: str) -> bool:
    """True if the code has a label or annotation of this name."""
    return re.search(rf"[/\"]{name}\b", source()) is not None


@cache
def known_metrics() -> dict[str, set[str]]:
    """Metric → its labels."""
    return {each.name: set(each.labels) for package in facts.PACKAGES for each in facts.metrics(package)}


def metrics(text: str) -> Iterator[tuple[str, set[str]]]:
    """The metrics that a text names, with labels."""
    for match in METRIC.finditer(text):
        labels = [label.partition("=")[0] for label in (match["labels"] or "").split(",") if label]
        yield match["name"], set(labels)


def is_module_or_value(name: str) -> bool:
    """True for a module, a member of one, a value of the chart, and a group of entry points."""
    values = {path for path, _ in leaves(schema())}
    if name in values or f'"{name}"' in source():
        return True
    module, _, member = name.rpartition(".")
    try:
        return hasattr(import_module(module), member) or find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_metrics_exist(page: Path) -> None:
    """With the labels that the page gives them."""
    known = known_metrics()
    named = [each for text in spans(page) for each in metrics(text)]
    assert [(name, labels) for name, labels in named if name not in known or not labels <= known[name]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_modules_exist(page: Path) -> None:
    """Paths from the root of the repository, dotted names of Muster's packages, and values of the chart."""
    paths = {text for text in spans(page) if re.fullmatch(r"[\w*./-]+", text) and text.split("/")[0] in FOLDERS}
    assert [path for path in paths if "/" in path and not any(ROOT.glob(path))] == []
    roots = {*PACKAGES, *schema()["properties"]}
    dotted = {text for text in spans(page) if re.fullmatch(r"\w+(\.\w+)+", text) and text.split(".")[0] in roots}
    assert [name for name in dotted if name not in OF_OTHERS and not is_module_or_value(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_words_of_the_code_are_in_the_code(page: Path) -> None:
    """Settings, fields, kinds, reasons, variables and flags, as far as their spelling tells that they are names."""
    named = {text.partition("=")[0].partition(" ")[0].partition(":")[0] for text in spans(page)}
    wrong = {name for name in named if WORD.fullmatch(name) and name.lower() not in source_words()}
    assert wrong - OF_OTHERS.keys() == set()
    keys = set(re.findall(r"(?<![.\w])muster\.dev/([a-z-]+)", " ".join(spans(page))))
    assert {key for key in keys if not is_key(key)} == set()


def test_a_wrong_name_is_seen() -> None:
    """The patterns find what the pages say; no exception is there in vain."""
    assert not is_module_or_value("muster.nothing.here")
    assert not is_module_or_value("controller.nothing")
    assert "nosuchsetting" not in source_words()
    assert list(metrics('muster_bind_total{pod,verdict="x"} > 0')) == [("muster_bind_total", {"pod", "verdict"})]
    named = " ".join(text for page in PAGES for text in spans(page))
    assert [name for name in OF_OTHERS if name not in named or name.lower() in source_words()] == []
    assert sum(bool(METRIC.search(text)) for page in PAGES for text in spans(page)) > 10
