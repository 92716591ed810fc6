"""`muster up --provider kind` as far as it goes without an engine: what kind is given, in which order, what lacks."""

import os
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from musterctl.app import main
from musterctl.kind.cluster import KindCluster, KindOptions, configuration, image_values
from musterctl.plane.machine import LocalError

CLUSTER_FIELDS = {"kind", "apiVersion", "name", "nodes", "networking", "featureGates", "runtimeConfig"}
NODE_FIELDS = {"role", "image", "labels", "extraMounts", "extraPortMappings", "kubeadmConfigPatches"}
"""Of kind.x-k8s.io/v1alpha4, as kind documents them."""
Muster = Callable[..., Result]
Programs = Callable[..., Path]
SCRIPTS = {
    "docker": """
        case "$1" in
          build) echo sha256:0123456789abcdef > "$(echo "$*" | grep -o 'iidfile=[^ ]*' | cut -d= -f2)" ;;
          image) echo python@sha256:feed ;;
        esac""",
    "kind": """
        case "$1" in
          get) cat "$CLUSTERS" 2>/dev/null || true ;;
          create) echo muster-test > "$CLUSTERS" ;;
          delete) rm "$CLUSTERS" ;;
        esac""",
    "kubectl": """
        case "$*" in
          *version*) echo '{"serverVersion": {"gitVersion": "v1.34.2"}}' ;;
          *apply*) cat > "$APPLIED" ;;
          *pods*) echo "muster-webhook-0 Running" ;;
        esac""",
    "helm": """echo "kind: List" """,
}


def test_configuration_has_fields_that_kind_documents() -> None:
    """One node for the control plane, workers in racks and blocks, one image for all."""
    config = configuration(KindOptions(nodes=4, racks=2, blocks=1, kubernetes="1.34.0"))
    assert set(config) <= CLUSTER_FIELDS
    assert all(set(node) <= NODE_FIELDS for node in config["nodes"])
    assert (config["kind"], config["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    assert [node["role"] for node in config["nodes"]] == ["control-plane", *["worker"] * 4]
    assert {node["image"] for node in config["nodes"]} == {"kindest/node:v1.34.0"}
    racks = [node["labels"]["muster.dev/rack"] for node in config["nodes"][1:]]
    assert racks == ["rack-0", "rack-0", "rack-1", "rack-1"]
    assert all(isinstance(value, str) for node in config["nodes"][1:] for value in node["labels"].values())


def test_without_a_version_kind_chooses() -> None:
    """Its default image fits its release."""
    assert not any("image" in node for node in configuration(KindOptions())["nodes"])


@pytest.mark.parametrize("version", ["1.34", "latest", "1.34.x", "v1"])
def test_versions_are_whole(version: str) -> None:
    """Because kind has no image of a minor version."""
    with pytest.raises(LocalError, match=r"full versions, such as 1\.34\.0"):
        configuration(KindOptions(kubernetes=version))


@pytest.mark.parametrize(("reference", "registry", "repository", "tag"), [
    ("localhost/muster:1", "localhost", "muster", "1"),
    ("muster:2", "", "muster", "2"),
    ("me/muster:3", "", "me/muster", "3"),
    ("registry.example:5000/a/muster:4", "registry.example:5000", "a/muster", "4"),
])  # fmt: skip
def test_values_for_an_image(reference: str, registry: str, repository: str, tag: str) -> None:
    """The chart puts together what was taken apart."""
    values = dict(each.removeprefix("--set-string=").split("=") for each in image_values(reference)[:-1])
    assert values.pop("image.digest") == ""  # a release's digest takes precedence over a tag
    assert values == {"image.registry": registry, "image.repository": repository, "image.tag": tag}


@pytest.mark.parametrize("reference", ["muster", "localhost:5000/muster", "muster@sha256:0123"])
def test_images_without_a_tag_are_refused(reference: str) -> None:
    """They cannot be loaded under the name that the chart asks for."""
    with pytest.raises(LocalError, match="needs a tag"):
        image_values(reference)


@pytest.fixture
def muster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Muster:
    """Runs the command line in this process, with a PATH that has only what a test puts there."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("MUSTER_NAME", "KIND_EXPERIMENTAL_PROVIDER", "KUBEBUILDER_ASSETS", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    return lambda *arguments: CliRunner().invoke(main, [*arguments])


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Puts scripts on the PATH; the file to which they write how they were called."""
    calls = tmp_path / "calls"
    for name, file in (("CLUSTERS", "clusters"), ("APPLIED", "applied"), ("CALLS", "calls")):
        monkeypatch.setenv(name, str(tmp_path / file))
    tools = {name: shutil.which(name, path=os.defpath) for name in ("sh", "cat", "grep", "cut", "rm")}

    def put(*names: str) -> Path:
        for name, path in tools.items():
            assert path, name
            (tmp_path / "bin" / name).symlink_to(path)
        for name in names:
            file = tmp_path / "bin" / name
            body = "\n".join(line.strip() for line in SCRIPTS[name].splitlines())
            file.write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\n{body}\n', encoding="utf-8")
            file.chmod(0o700)
        return calls

    return put


def shown(calls: Path) -> list[str]:
    """The calls, without names of temporary files, and each program with its first words only."""
    return [" ".join(line.split()[:3]) for line in calls.read_text(encoding="utf-8").splitlines()]


def test_up_builds_loads_and_installs(muster: Muster, programs: Programs, tmp_path: Path) -> None:
    """In this order, and for the version that the cluster has; a second time nothing is created."""
    calls = programs("docker", "kind", "kubectl", "helm")
    result = muster("up", "--name", "test", "--provider", "kind", "--nodes", "2")
    assert result.exit_code == 0, result.output
    words = shown(calls)
    wanted = (
        *("docker info", "docker build", "docker tag", "kind create cluster", "docker save", "kind load"),
        *("kubectl", "helm"),
    )
    found = [next(i for i, call in enumerate(words) if call.startswith(each)) for each in wanted]
    assert found == sorted(found), words
    text = calls.read_text(encoding="utf-8")
    assert f"--set-string=image.tag={version('muster')}-0123456789ab" in text
    assert "--kube-version=v1.34.2" in text
    assert "--build-arg=LOCK=requirements.lock " in text
    assert "kind: List" in (tmp_path / "applied").read_text(encoding="utf-8")
    assert len(yaml.safe_load((tmp_path / "state/muster/test/kind.yaml").read_text(encoding="utf-8"))["nodes"]) == 3
    assert "muster-webhook-0 Running" in result.output
    calls.unlink()
    assert muster("up", "--name", "test", "--provider", "kind").exit_code == 0
    assert not [call for call in shown(calls) if call.startswith("kind create")]


def test_other_options_are_refused(muster: Muster, programs: Programs) -> None:
    """A cluster is not quietly another than what was asked for, and what it cannot have is said."""
    programs("docker", "kind", "kubectl", "helm")
    assert muster("up", "--name", "test", "--provider", "kind").exit_code == 0
    other = muster("up", "--name", "test", "--provider", "kind", "--nodes", "7")
    assert "kind cluster test exists with nodes 3; `muster down --name test` ends it" in other.output
    useless = muster("up", "--name", "test", "--provider", "kind", "--gpus", "4", "--foreground")
    assert "--gpus, --foreground: cannot be combined with --provider kind" in useless.output
    assert "test is a kind cluster" in muster("up", "--name", "test").output
    assert "--image requires --provider kind" in muster("up", "--name", "other", "--image", "muster:1").output


def test_down_deletes_the_cluster_and_its_folder(muster: Muster, programs: Programs, tmp_path: Path) -> None:
    """Afterwards nobody knows of it."""
    calls = programs("docker", "kind", "kubectl", "helm")
    muster("up", "--name", "test", "--provider", "kind")
    assert "kind cluster muster-test" in muster("status", "--name", "test").output
    assert muster("down", "--name", "test").exit_code == 0
    assert "kind delete cluster" in shown(calls)
    assert not (tmp_path / "state/muster/test").exists()
    assert "there is no local control plane 'test'" in muster("down", "--name", "test").output


@pytest.mark.parametrize(("there", "message"), [
    ((), "kind is not on the PATH: https://kind.sigs.k8s.io"),
    (("kind",), "there is no container engine: docker or podman must be on the PATH"),
])  # fmt: skip
def test_what_is_missing(
    muster: Muster, programs: Programs, tmp_path: Path, there: tuple[str, ...], message: str
) -> None:
    """With where to get it, and before anything is made."""
    programs(*there)
    result = muster("up", "--name", "test", "--provider", "kind")
    assert result.exit_code == 1
    assert message in result.output
    assert not (tmp_path / "state").exists()


def test_an_engine_that_does_not_answer_says_why(muster: Muster, programs: Programs, tmp_path: Path) -> None:
    """In its own words."""
    programs("kind")
    docker = tmp_path / "bin/docker"
    docker.write_text("#!/bin/sh\necho no daemon here >&2\nexit 1\n", encoding="utf-8")
    docker.chmod(0o700)
    result = muster("up", "--name", "test", "--provider", "kind")
    assert result.exit_code == 1
    assert "the container engine does not respond" in result.output
    assert "no daemon here" in result.output


def test_failures_of_programs_are_told(muster: Muster, programs: Programs, tmp_path: Path) -> None:
    """With the command, so that a user can try it himself; a cluster that was begun can be taken down."""
    programs("docker", "kind", "kubectl", "helm")
    kubectl = tmp_path / "bin/kubectl"
    kubectl.write_text("#!/bin/sh\necho refused >&2\nexit 3\n", encoding="utf-8")
    result = muster("up", "--name", "test", "--provider", "kind")
    assert result.exit_code == 1
    assert "`kubectl --kubeconfig=" in result.output
    assert "failed with exit code 3:\nrefused" in result.output
    assert KindCluster("test").made() is not None
    assert muster("down", "--name", "test").exit_code == 0
