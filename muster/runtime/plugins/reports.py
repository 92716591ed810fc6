"""Reports of progress: variables, a token and a certificate in each container that trains.

Names, paths and audience are those of Kubeflow Trainer's SDK (`update_trainjob_status`). The token is valid for this
TrainJob's status and nothing else. Only the controller has this plugin, and only with a status server.
"""

from collections.abc import Callable, Iterable

from muster.api.kubeflow.trainer import GROUP, VERSION
from muster.runtime.info import Info
from muster.runtime.plan import Component, Mount, Plan, Volume, owned

VOLUME = "kubeflow-trainer-token"
FOLDER = "/var/run/secrets/kubeflow/trainer"
EXPIRES_S = 3600
_STEPS = frozenset({"trainer", "launcher"})


class TrainerReports:
    """For one status server: its URL for pods, and a function for the current certificates (PEM) of its authorities."""

    name = "TrainerReports"

    def __init__(self, url: str, ca_pem: Callable[[], str]) -> None:
        self._url = url.rstrip("/")
        self._ca_pem = ca_pem

    def enforce_pod_spec(self, info: Info) -> None:
        """Adds variables and volume to the pods that train."""
        if info.train_job is None:
            return
        base = f"{GROUP}/{VERSION}/namespaces/{info.owner.namespace}/trainjobs/{info.owner.name}/status"
        variables = {
            "KUBEFLOW_TRAINER_SERVER_URL": f"{self._url}/apis/{base}",
            "KUBEFLOW_TRAINER_SERVER_CA_CERT": f"{FOLDER}/ca.crt",
            "KUBEFLOW_TRAINER_SERVER_TOKEN": f"{FOLDER}/token",
        }
        token = {"audience": base, "expirationSeconds": EXPIRES_S, "path": "token"}
        ca = {"name": _map_name(info.owner.name), "items": [{"key": "ca.crt", "path": "ca.crt"}]}
        source = {"projected": {"sources": [{"serviceAccountToken": token}, {"configMap": ca}]}}
        for pod_set in info.pod_sets:
            if pod_set.role not in _STEPS or pod_set.target is None:
                continue
            pod_set.volumes.append(Volume(VOLUME, source, self.name, "trainers report their progress"))
            pod_set.target.mounts.append(Mount(VOLUME, FOLDER))
            pod_set.target.set(self.name, {key: (value, "the status server") for key, value in variables.items()})

    def build(self, plan: Plan) -> Iterable[Component]:
        """The certificate."""
        if plan.owner.kind == "TrainJob" and any(self.name == each.plugin for s in plan.pod_sets for each in s.volumes):
            manifest = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": owned(plan.owner, _map_name(plan.owner.name)),
                "data": {"ca.crt": self._ca_pem()},
            }
            yield Component(manifest, self.name)


def _map_name(train_job: str) -> str:
    return f"{train_job}-tls-config"
