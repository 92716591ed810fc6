"""A process that fills its caches with 25 MB of short arguments a kind, as lists do, under a limit of memory."""

import resource
import sys

import msgspec
from short_args import JSON, TEMPLATE, metadata

from controller.app import Controller
from muster.kube.client import Client
from muster.kube.codec import ListPage
from muster.kube.config import ClientConfig
from muster.kube.reflector import Reflector
from webhook.caches import ClusterLookups

BYTES = 25 * 10**6
_LABELS = {"muster.dev/framework": "torch"}
_JOB_SETS = {"template": {"spec": {"replicatedJobs": [{"name": "n", "template": {"spec": {"template": TEMPLATE}}}]}}}


def fill(reflector: Reflector, spec: JSON) -> None:  # type: ignore[type-arg]  # of any kind
    """Show a cache objects of this spec, as many as there are bytes for."""
    size = number = 0
    while size < BYTES:
        one = {"metadata": metadata(number, labels=_LABELS), "spec": spec}
        body = msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": [one]})
        for _ in reflector.mirror.put_all(ListPage.read(reflector._resource, body), set()):
            pass
        size, number = size + len(body), number + 1
    assert len(reflector.store) == number


if __name__ == "__main__":
    name, limit = sys.argv[1], int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    client = Client(ClientConfig("http://127.0.0.1:1"))
    if name == "webhook":
        caches = {each.kind: each.reflector for each in ClusterLookups(client).caches}
        fill(caches["trainingruntimes.trainer.kubeflow.org"], _JOB_SETS)
        fill(caches["jobs.batch"], {"template": TEMPLATE})
        fill(caches["statefulsets.apps"], {"template": TEMPLATE})
    else:
        controller = Controller(client, 1)
        fill(controller.reflectors["jobs"], {"tasks": [{"name": "t", "replicas": 1, "template": TEMPLATE}]})
        fill(controller.reflectors["pods"], TEMPLATE["spec"])
    client.close()
    sys.stdout.write("filled")
