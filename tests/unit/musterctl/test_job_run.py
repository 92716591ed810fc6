"""`muster job run` without a cluster: what it reads, what it would create, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from musterctl.app import main

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "volcano"
EXAMPLES = sorted(file for file in FOLDER.glob("*.yaml") if file.stem != "jobflow")  # whose Jobs the controller makes
JOB = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a, namespace: team}\nspec: {}\n"
QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"


def run(*arguments: str, stdin: str = "") -> Result:
    """Runs `muster job run`."""
    return CliRunner().invoke(main, ["job", "run", *arguments], input=stdin)


def printed(*arguments: str, stdin: str = "") -> list[Any]:
    """The objects that a dry run prints."""
    result = run(*arguments, "--dry-run", stdin=stdin)
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.output))


def refused(*arguments: str, stdin: str = "", code: int = 2) -> str:
    """The message of a refusal."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_can_be_run(file: Path) -> None:
    """All its objects in their order, its Job among them."""
    found = printed("-f", str(file))
    kinds = [line.split()[1] for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("kind:")]
    assert [each["kind"] for each in found] == kinds
    assert "Job" in kinds


def test_a_key_that_yaml_takes_for_a_truth_value() -> None:
    """It becomes the text that kubectl makes of it."""
    (file,) = (file for file in EXAMPLES if file.stem == "abort-and-timeout")
    (job,) = printed("-f", str(file))
    assert job["spec"]["tasks"][1]["template"]["spec"]["nodeSelector"] == {"false": "where"}


def test_name_renames_the_one_job() -> None:
    """The other objects keep their names; with several Jobs it is refused; metadata may be missing."""
    names = [each["metadata"]["name"] for each in printed("b", "-f", "-", stdin=f"{QUEUE}---\n{JOB}---\n")]
    assert names == ["q", "b"]
    nameless = JOB.replace("{name: a, namespace: team}", "")
    assert printed("b", "-f", "-", stdin=nameless)[0]["metadata"] == {"name": "b"}
    assert "contain 2 Jobs, and NAME can rename only one" in refused("b", "-f", "-", stdin=f"{JOB}---\n{JOB}")


def test_the_namespace_must_be_that_of_the_manifest() -> None:
    """Two that contradict each other are refused, before anything is created."""
    message = refused("-f", "-", "-n", "other", stdin=f"{QUEUE}---\n{JOB}")
    assert "-: Job a is in namespace team, and --namespace is other: pass -n team" in message
    assert printed("-f", "-", "-n", "team", stdin=JOB)[0]["metadata"]["namespace"] == "team"
    assert printed("x", "--image=i", "-n", "team")[0]["metadata"] == {"name": "x", "namespace": "team"}


def test_manifests_that_are_none() -> None:
    """A missing file, no Job, no kind: a sentence each."""
    assert "cannot read none.yaml: No such file" in refused("-f", "none.yaml", code=1)
    assert "the manifests contain no Job of batch.volcano.sh/v1alpha1" in refused("-f", "-", stdin=QUEUE, code=1)
    assert "an object has no apiVersion or no kind" in refused("-f", "-", stdin="kind: Job", code=1)


def test_what_stands_after_two_dashes_is_the_command() -> None:
    """And nothing else is: neither a mistyped option nor a name that was left out."""
    dry = run("x", "--image=i", "--replicas=2", "--dry-run", "--", "python", "--replica", "1e3")
    (task,) = yaml.safe_load(dry.output)["spec"]["tasks"]
    assert (task["replicas"], task["template"]["spec"]["containers"][0]["command"]) == (
        2,
        ["python", "--replica", "1e3"],
    )
    assert "'1e3'" in dry.output, "kubectl would read a number"
    assert "No such option '--replica'. Did you mean '--replicas'?" in refused("x", "--image=i", "--replica", "4")
    assert "unexpected extra arguments (python train.py)" in refused("x", "--image=i", "python", "train.py")
    assert "give a NAME and --image" in refused("--image=i", "--", "python", "train.py")
    assert "[-- COMMAND...]" in run("--help").output


def test_the_class_and_the_times_of_a_job() -> None:
    """The class stands at the Job alone, where it can be changed; a time that is none is refused."""
    [made] = printed("x", "--image=i", "--priority=high", "--time=1h30m", "--expected-runtime=1h")
    assert made["metadata"]["annotations"] == {"muster.dev/expected-runtime": "3600s"}
    pods = made["spec"]["tasks"][0]["template"]["spec"]
    assert (made["spec"]["priorityClassName"], pods["activeDeadlineSeconds"]) == ("high", 5400)
    assert "priorityClassName" not in pods
    assert "is not a duration" in refused("x", "--image=i", "--time=soon")
    assert "omit --priority, --time, or" in refused("-f", "-", "--priority=p", "--time=1h", stdin=JOB)


def test_options_say_nothing_about_a_manifest() -> None:
    """Those that were given are named, defaults are not."""
    options = ("--image=i", "--replicas=1", "--min=1", "--queue=default", "--requests=cpu=1", "--limits=cpu=1")
    message = refused("-f", "-", *options, "--", "sleep", stdin=JOB)
    names = "--image, --replicas, --min, --queue, --requests, --limits, -- COMMAND"
    assert f"omit {names}, or change the manifest" in message
    assert "omit --replicas, or" in refused("-f", "-", "--replicas=1", stdin=JOB)
    assert "omit -- COMMAND, or" in refused("-f", "-", "--", "sleep", stdin=JOB)


@pytest.mark.parametrize("name", ["", "a/b", "a?b", "A", "pod/a"])
@pytest.mark.parametrize("command", [["job", "view"], ["job", "delete", "x"], ["job", "suspend"], ["queue", "close"]])
def test_names_that_would_be_another_path(command: list[str], name: str) -> None:
    """An empty name would be all objects; nothing is asked of a cluster."""
    result = CliRunner().invoke(main, [*command, name, "--kubeconfig=/dev/null"])
    assert result.exit_code == 2
    assert f"{name!r} cannot be the name of a" in result.output
