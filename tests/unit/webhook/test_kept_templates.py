"""The webhook's caches keep of templates with a megabyte of short arguments no more than their text."""

from typing import Any

import pytest
from short_args import TEMPLATE, fill, growth, metadata

from muster.kube.client import Client
from muster.kube.config import Config
from webhook.lookup import ClusterLookups

JSON = dict[str, Any]


def runtime(number: int) -> JSON:
    """A TrainingRuntime."""
    job = {"name": "node", "replicas": 1, "template": {"spec": {"template": TEMPLATE}}}
    return {"metadata": metadata(number), "spec": {"template": {"spec": {"replicatedJobs": [job]}}}}


def owner(number: int) -> JSON:
    """A StatefulSet or Job with a framework."""
    return {"metadata": metadata(number, labels={"muster.dev/framework": "torch"}), "spec": {"template": TEMPLATE}}


@pytest.mark.parametrize("kind", ["trainingruntimes.trainer.kubeflow.org", "jobs.batch", "statefulsets.apps"])
def test_a_cache_keeps_the_text_of_templates(kind: str) -> None:
    """At most."""
    client = Client(Config("http://127.0.0.1:1"))
    caches = {each.kind: each.reflector for each in ClusterLookups(client).caches}
    with growth() as grown:
        size = fill(caches[kind], runtime if "runtimes" in kind else owner)
    client.close()
    assert grown.size_bytes < 1.2 * size
