"""`muster train`: what becomes of a file, and of a function of it, on its way into a command."""

import subprocess
import sys
from pathlib import Path

import click
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime
from musterctl.commands import trainfile
from musterctl.options import Submitted

SHIPPED = Path(__file__).parents[3] / "charts" / "muster" / "runtimes"
FILE = '''"""Says what it was given."""
import sys
print(sys.argv[1:], "$(hostname) $HOME `id` $$ MUSTER_END")
MUSTER_END = "a line that would end it"


def learn(lr, words="none"):
    """Nested:
    indented."""
    import math
    print("learned", lr, words, math.pi > 3)
'''


def shipped(name: str) -> ClusterTrainingRuntime:
    """A runtime of the chart."""
    return msgspec.yaml.decode((SHIPPED / f"{name}.yaml").read_bytes(), type=ClusterTrainingRuntime)


def as_kubelet(word: str) -> str:
    """A word of a command as kubelet hands it to the container: every `$$` is one `$`."""
    return word.replace("$$", "$")


def ran(place: str, *arguments: str) -> str:
    """The output of a file when the command runs here, as kubelet would run it."""
    run = trainfile.command("plain", *trainfile.read_train_file(place, arguments))
    folder = Path(sys.executable).parent
    env = {"PATH": f"{folder}:/bin:/usr/bin"}
    result = subprocess.run([as_kubelet(word) for word in run], capture_output=True, text=True, check=True, env=env)
    return result.stdout


def test_a_file_arrives_as_it_is(tmp_path: Path) -> None:
    """No sign in it means anything to a shell, to Kubernetes, or to the end of the text."""
    path = tmp_path / "it's mine.py"
    path.write_text(FILE)
    assert ran(str(path), "--lr", "a b") == "['--lr', 'a b'] $(hostname) $HOME `id` $$ MUSTER_END\n"


SIGNS = st.text(st.sampled_from("'\"\\$`!*?~#&|;<>(){}[] -=%aé😀"), max_size=20)
ANY = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@settings(max_examples=settings().max_examples // 20)  # each starts a shell and Python, for up to 20 texts
@given(st.lists(SIGNS | ANY, min_size=10, max_size=20))
def test_any_argument_and_any_text(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Both come back as they went."""
    path = tmp_path_factory.mktemp("train") / "train.py"
    path.write_text(f"import sys\nprint({texts!r} == sys.argv[1:])\n", encoding="utf-8")
    assert ran(str(path), *texts) == "True\n"


def test_a_function_goes_alone(tmp_path: Path) -> None:
    """Only its own lines are sent, and it is called with what follows."""
    path = tmp_path / "train.py"
    path.write_text(FILE)
    assert ran(f"{path}:learn", "lr=0.1", "words=it's") == "learned 0.1 it's True\n"


@pytest.mark.parametrize(("content", "place", "arguments", "message"), [
    (None, "train.py", (), "cannot be read: No such file"),
    ("def", "train.py", (), "is not Python: invalid syntax"),
    ("def one(): pass\ndef two(): pass", "train.py:three", (),
        "has no function 'three' at its top level; its functions are: one, two"),
    ("def one(): pass", "train.py:one", ("5",), "'5' is not an argument for a function: write name=value"),
    ("x = 1\n" * 20_000, "train.py", (), "has 120000 bytes, and 100000 can be sent"),
])  # fmt: skip
def test_mistakes(tmp_path: Path, content: str | None, place: str, arguments: tuple[str, ...], message: str) -> None:
    """The reason, in a sentence, before anything is asked of the cluster."""
    if content is not None:
        (tmp_path / "train.py").write_text(content)
    with pytest.raises(click.ClickException, match=message.replace("(", r"\(")):
        trainfile.read_train_file(str(tmp_path / place), arguments)


@pytest.mark.parametrize(("runtime", "start"), [
    ("torch-distributed", ["sh", "-c", "torchrun"]),
    ("mpi-distributed", ["mpirun", "sh", "-c", "python"]),
    ("jax-distributed", ["sh", "-c", "python"]),
    ("plain", ["sh", "-c", "python"]),
])  # fmt: skip
def test_what_starts_a_file(runtime: str, start: list[str]) -> None:
    """By the runtime's policy."""
    run = trainfile.command(trainfile.framework(shipped(runtime)), "train.py", "pass", ())
    assert run[:-1] == start[:-1]
    assert f"exec {start[-1]} " in run[-1]


def test_torchtune_runs_no_files() -> None:
    """And says so."""
    with pytest.raises(click.ClickException, match="fine-tunes with torchtune and cannot run your file"):
        trainfile.framework(shipped("torchtune-llama3.2-1b"))


@pytest.mark.parametrize(
    ("file", "start"),
    [("Train_it.py", "train-it-"), ("2nd.py", "train-2nd-"), ("__.py", "train-"), ("a" * 90, "a" * 40)],
)
def test_names(file: str, start: str) -> None:
    """After the file; something that Kubernetes takes for a name."""
    name = trainfile.job_name(file)
    assert name.startswith(start)
    assert "--" not in name


def test_annotations_reach_the_pods_that_run_it() -> None:
    """With MPI that is the launcher."""
    made = trainfile.manifest(
        "a", shipped("mpi-distributed"), ["x"], nodes=2, resources={}, queue="research", image=None, env={},
        annotations={"a": "b"},
    )  # fmt: skip
    [patch] = made["spec"]["runtimePatches"]
    [job] = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert (job["name"], made["metadata"]["labels"]) == ("launcher", {"muster.dev/queue": "research"})


def test_the_class_and_the_times_are_those_of_the_train_job() -> None:
    """The class reaches its pods through an annotation: the API has no field for it."""
    given = Submitted(
        {"priorityClassName": "high"}, {"activeDeadlineSeconds": 7200}, {"muster.dev/expected-runtime": "3600s"}
    )
    made = trainfile.manifest(
        "a", shipped("torch-distributed"), ["x"], nodes=2, resources={}, queue=None, image=None, env={}, annotations={},
        submitted=given,
    )  # fmt: skip
    assert made["spec"]["activeDeadlineSeconds"] == 7200
    assert made["metadata"]["annotations"] == {
        "muster.dev/expected-runtime": "3600s",
        "muster.dev/priority-class": "high",
    }
