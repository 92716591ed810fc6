"""`muster shape` without a cluster: what comes out, why, and what would be refused."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import manifests
from click.testing import CliRunner, Result

from muster.workloads.table import KINDS
from musterctl.app import main
from webhook.offline.schemas import mistakes

JSON = dict[str, Any]
LABELS = {"muster.dev/queue": "default", "muster.dev/framework": "torch"}


def job(**spec: Any) -> JSON:
    """An Indexed Job of four pods."""
    pod = {"containers": [manifests.container("node", requests={"cpu": "2"}, image="image")]}
    return manifests.batch_job("train", 4, "", labels=LABELS, template={"spec": pod}, **spec)


def pod(name: str, namespace: str, labels: JSON | None = None) -> JSON:
    """A pod."""
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "a"}]}}


def printed(result: Result) -> list[JSON]:
    """The objects that it printed."""
    return [each for each in yaml.safe_load_all(result.stdout) if each]


def test_a_job_and_its_first_pod(shape: Any) -> None:
    """The template has the Job's labels; the pod has scheduler and env, by its owner in the same file."""
    result = shape(job())
    assert result.exit_code == 0
    after, first = printed(result)
    assert after["spec"]["template"]["metadata"]["labels"] == LABELS
    env = {each["name"]: each.get("value") for each in first["spec"]["containers"][0]["env"]}
    assert (env["PET_NNODES"], env["PET_MASTER_ADDR"]) == ("4", "train-0.train")
    assert first["spec"]["schedulerName"] == "muster"


def test_reasons(shape: Any) -> None:
    """Every added value stands on a line with + and says why it is there and who says so."""
    lines = shape(job(), options=("--explain",)).stdout.splitlines()
    why = {line.partition("#")[0].strip(): line.partition("#")[2].strip() for line in lines if "#" in line}
    assert why["+     - name: PET_NNODES"] == "number of pods of Job train (Torch)"
    assert why["+   schedulerName: muster"] == "Muster finds its node (label muster.dev/queue)"
    assert why["+         muster.dev/framework: torch"].startswith("so that its pods have it")
    assert any(line.startswith("+   schedulingGates:") for line in lines)


def test_diff_shows_what_is_replaced(shape: Any) -> None:
    """A value that was there before stands on a line with -."""
    plain = pod("a", "team", {"muster.dev/queue": "default"})
    plain["spec"]["schedulerName"] = "default-scheduler"
    lines = shape(plain, options=("--diff",)).stdout.splitlines()
    assert "-   schedulerName: default-scheduler" in lines
    assert "+   schedulerName: muster" in lines
    assert not any("#" in line for line in lines)


def test_namespace_of_the_same_file(shape: Any) -> None:
    """A label on a namespace is seen without a cluster, and only in that namespace."""
    metadata = {"name": "team", "labels": {"muster.dev/queue": "q"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    _, inside, outside, system = printed(
        shape(namespace, pod("a", "team"), pod("b", "other"), pod("c", "kube-system", LABELS))
    )
    assert inside["metadata"]["labels"] == {"muster.dev/queue": "q"}
    assert outside == pod("b", "other")
    assert system == pod("c", "kube-system", LABELS)


@pytest.mark.parametrize("runtime", ["torch-distributed", "mine"])
def test_a_train_job_and_what_it_becomes(shape: Any, runtime: str) -> None:
    """Shipped runtimes are known, and those of the same file."""
    own = yaml.safe_load((Path("charts/muster/runtimes") / "torch-distributed.yaml").read_text(encoding="utf-8"))
    own["metadata"]["name"] = "mine"
    train_job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tune"},
        "spec": {
            "runtimeRef": {"name": runtime},
            "trainer": {"numNodes": 2},
            "runtimePatches": [{"manager": "a.io/b"}],
        },
    }
    result = shape(own, train_job, options=("--explain",))
    assert result.exit_code == 0, result.output
    assert "when the patch was last changed" in result.stdout
    assert "# of TrainJob tune, by " in result.stdout
    assert "number of pods of TrainJob tune (Torch)" in result.stdout


def test_refused(shape: Any) -> None:
    """A refused object is printed unchanged, with all errors on standard error, and the exit code is 1."""
    bad = job(completionMode="NonIndexed")
    bad["metadata"]["labels"] = {**LABELS, "muster.dev/framework": "torhc"}
    result = shape(bad, pod("a", "team"))
    assert result.exit_code == 1
    assert "refused: Job train: spec.completionMode" in result.stderr
    assert "torhc" in result.stderr
    assert printed(result)[-1] == pod("a", "team")
    lost = shape({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": [1]}})
    assert lost.exit_code == 1
    assert "metadata.labels: Invalid value: [1]: must be a map" in lost.stderr


@pytest.mark.parametrize(("change", "refusal"), [
    ({"paralelism": 3}, 'spec.paralelism: Unsupported value: "paralelism": there is no such field; did you mean'),
    ({"parallelism": "3"}, 'spec.parallelism: Invalid value: "3": must be a number'),
    ({"completionMode": "Both"}, "spec.completionMode: Unsupported value: "),
    ({"template": None}, "spec.template: Required value: it is missing"),
    ({"template": {"spec": {"containers": [{"name": "a", "imag": "b"}]}}}, "spec.template.spec.containers[0].imag"),
])  # fmt: skip
def test_what_the_schema_refuses_is_refused_first(shape: Any, change: JSON, refusal: str) -> None:
    """As `kubectl apply` does; what follows from the object is not shown."""
    bad = job()
    bad["spec"] |= change
    result = shape(bad)
    assert result.exit_code == 1
    assert f"refused: Job train: {refusal}" in result.stderr
    assert len(printed(result)) == 1


def test_kinds_that_are_not_musters_are_named(shape: Any) -> None:
    """They are printed as they are; another version of a kind that is Muster's is refused."""
    result = shape({"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "g"}})
    assert (result.exit_code, "Muster does not read objects of this kind" in result.stderr) == (0, True)
    old = shape({"apiVersion": "batch.volcano.sh/v1beta1", "kind": "Job", "metadata": {"name": "g"}})
    assert (old.exit_code, "must be batch.volcano.sh/v1alpha1" in old.stderr) == (1, True)


def test_the_schema_of_each_kind_is_known() -> None:
    """Of workloads at least that of their pod templates."""
    pods = {"spec": {"containers": [{"name": "a", "nothing": 1}]}}
    for kind in KINDS:
        document: JSON = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
        for path in kind.templates:
            node = document
            for part, following in pairwise((*path, "")):
                if part != "*":
                    inner: Any = pods if not following else [{}] if following == "*" else {}
                    node[part] = inner
                    node = inner[0] if following == "*" else inner
        assert any("nothing" in each.path for each in mistakes(document)) == bool(kind.templates)


@pytest.mark.parametrize("text", ["- a", "{", "a: b: c", "metadata: 7"])
def test_what_is_no_manifest(tmp_path: Path, text: str) -> None:
    """A file that holds something else is named, without a stack trace."""
    file = tmp_path / "x.yaml"
    file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(main, ["shape", "-f", str(file)])
    assert result.exit_code == 1
    assert "x.yaml" in result.output


def test_shaping_twice_changes_nothing(shape: Any) -> None:
    """The output as input is unchanged."""
    once = printed(shape(job()))
    assert printed(shape(*once))[:2] == once[:2]


def test_every_example_can_be_shaped() -> None:
    """Every manifest that Muster brings is admitted: keys and times are read as kubectl reads them."""
    files = sorted([*Path("examples").rglob("*.yaml"), *Path("charts/muster/runtimes").glob("*.yaml")])
    results = {file: CliRunner().invoke(main, ["shape", "--explain", "-f", str(file)]) for file in files}
    assert {file: result.output for file, result in results.items() if result.exit_code} == {}


def test_resource_groups(shape: Any, tmp_path: Path) -> None:
    """With the webhook's configuration, groups show, each with its name; a mistake in it ends the command."""
    file = tmp_path / "admission.yaml"
    file.write_text("resourceGroups: [{resourceGroup: gpu, labels: {pool: gpu}}]")
    grouped = pod("a", "team")
    grouped["metadata"]["annotations"] = {"volcano.sh/resource-group": "gpu"}
    result = shape(grouped, options=("--explain", f"--admission-config={file}"))
    assert any(
        line.startswith("+     pool: gpu")
        and line.endswith("# nodes of the resource group have this label (resource group gpu: labels)")
        for line in result.stdout.splitlines()
    )
    file.write_text("resourceGroups: [{resourceGroup: gpu, label: {pool: gpu}}]")
    result = shape(grouped, options=(f"--admission-config={file}",))
    assert result.exit_code == 2
    assert "resourceGroups[0].label" in result.stderr
