"""Slips of the pen, typed as users type them: each is refused or warned of, with the name that was meant."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from manifests import create, dry_run
from tenants import refusal

from muster.kube.client import Client
from musterctl.app import main
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
JSON = dict[str, Any]
QUEUE = {"muster.dev/queue": "default"}
TORCH = {"muster.dev/framework": "torch"}


def pods(limits: JSON | None = None, **spec: Any) -> JSON:
    """The spec of a small pod."""
    container = {"name": "main", "image": "registry.k8s.io/pause", "resources": {"limits": limits or {}}}
    return {"restartPolicy": "Never", "containers": [container], **spec}


def job(whole: JSON, own: JSON | None = None, name: str = "t3", **spec: Any) -> JSON:
    """An Indexed Job of one pod with these labels on itself and its template."""
    template = {"metadata": {"labels": own or {}}, "spec": pods(**spec)}
    body = {"completionMode": "Indexed", "completions": 1, "parallelism": 1, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": whole}, "spec": body}


def stateful_set() -> JSON:
    """A StatefulSet of one rank, whose Service nobody has made."""
    labels = {**TORCH, **QUEUE, "app": "ranks"}
    template = {"metadata": {"labels": labels}, "spec": pods() | {"restartPolicy": "Always"}}
    spec = {"serviceName": "ranks", "selector": {"matchLabels": {"app": "ranks"}}, "template": template}
    metadata = {"name": "ranks", "labels": TORCH | QUEUE}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


class Said:
    """Warnings and refusals of the API server for manifests, as kubectl shows them beside its result."""

    def __init__(self, plane: Plane) -> None:
        self._warnings: list[str] = []
        self.client = Client.load(plane.kubeconfig, on_warning=self._warnings.append)

    def __call__(self, send: Callable[[], object]) -> str:
        """Return the warnings of one request."""
        self._warnings.clear()
        error = refusal(send)
        return "\n".join([*self._warnings, error])

    def to(self, manifest: JSON) -> str:
        """Return the warnings about a manifest, from a dry run."""
        return self(lambda: dry_run(self.client, manifest))


@pytest.fixture(scope="module")
def said(shared_plane: Plane) -> Iterator[Said]:
    """Warnings and refusals of the shared plane."""
    one = Said(shared_plane)
    yield one
    one.client.close()


SLIPS: dict[str, tuple[JSON, str]] = {
    "two frameworks": (job({**TORCH, **QUEUE}, {"muster.dev/framework": "jax"}),
        "must be 'torch', as in metadata.labels[muster.dev/framework]"),
    "a framework without a queue": (job(TORCH), "without the label muster.dev/queue 'default-scheduler' places them"),
    "a label of another domain": (job({"muster.io/queue": "default"}), "did you mean label muster.dev/queue?"),
    "a foreign scheduler": (job(QUEUE, schedulerName="yunikorn"), "'yunikorn' is not a scheduler of Muster's"),
    "the cluster's own scheduler": (job(QUEUE, schedulerName="default-scheduler"),
        "spec.template.spec.schedulerName: the pods get 'muster' in place of 'default-scheduler'"),
    "a StatefulSet without its Service": (stateful_set(), "there is no Service ranks in namespace"),
}  # fmt: skip


APPLIED = "the cluster's own scheduler"
"""The slip that `kubectl apply` notes: a client that creates the Job leaves open who has written that name."""


@pytest.mark.parametrize("slip", [slip for slip in SLIPS if slip != APPLIED])
def test_a_slip_in_a_manifest_is_told(said: Said, slip: str) -> None:
    """As it is submitted."""
    manifest, words = SLIPS[slip]
    assert words in said.to(manifest)


def test_kubectl_apply_shows_what_is_told(shared_plane: Plane) -> None:
    """Beside its result."""
    manifest, words = SLIPS[APPLIED]
    applied = shared_plane.kubectl("apply", "--dry-run=server", "--filename=-", stdin=json.dumps(manifest))
    assert applied.stdout == "job.batch/t3 created (server dry run)\n"
    assert words in applied.stderr


def test_a_job_that_muster_does_not_place_is_explained(said: Said, plane: Plane, namespace: str) -> None:
    """With the label that was meant, or the one that is missing."""

    def explain(name: str, kind: str = "job") -> str:
        arguments = ["explain", kind, name, "-n", namespace, "--kubeconfig", str(plane.kubeconfig)]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == (1 if kind == "job" else 0)
        return result.output

    create(said.client, job({"muster.dev/qeue": "default"}), namespace)
    assert "Job t3 has the label muster.dev/qeue; did you mean muster.dev/queue?" in explain("t3")
    create(said.client, job({}, name="plain"), namespace)
    assert "Job plain has no label muster.dev/queue, so Muster does not place its pods" in explain("plain")
    assert "there is no job with a gang 'gone'" in explain("gone")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "labels": {"muster.io/queue": "default"}}}
    create(said.client, {**pod, "spec": pods()}, namespace)
    assert "Pod alone has the label muster.io/queue; did you mean muster.dev/queue?" in explain("alone", "pod")


@pytest.mark.parametrize("value", ["extender.config.actions=alocate", "queues[0].spec.wieght=2"])
def test_a_slip_in_a_value_of_the_chart_is_refused(value: str) -> None:
    """Before anything is installed."""
    result = CliRunner().invoke(main, ["render", "--set", "queues[0].name=a", "--set", value])
    assert result.exit_code == 1
    assert value.partition("=")[0].rpartition(".")[2] in result.output
