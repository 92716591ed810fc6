"""JAX, XGBoost and plain training: a count, a rank and an address each, or nothing at all."""

from muster.api.fields import FieldError, Findings
from muster.runtime.devices import gpus
from muster.runtime.info import Info, PodSet
from muster.runtime.plugins.reserved import Variables, reserved, yielding
from muster.runtime.values import Late, text

PORT = 29500


class PlainML:
    """No framework: pods get a subdomain, and so names; a TrainJob its number of nodes."""

    name = "PlainML"
    framework = "plain"

    def enforce_ml_policy(self, info: Info) -> None:
        """Nothing is to be added."""


class JAX:
    """What `jax.distributed.initialize()` reads."""

    name = "JAX"
    framework = "jax"
    RESERVED = ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS")

    def validate(self, info: Info) -> Findings:
        """Reserved variables; a TrainJob may override them, as it always could."""
        if info.framework != self.framework or info.train_job:
            return Findings()
        return reserved(info, self.RESERVED)

    def enforce_ml_policy(self, info: Info) -> None:
        """One process in each pod; rank 0 coordinates."""
        for pod_set in info.trainers:
            pod_set.slots = 1
            variables: Variables = {
                "JAX_NUM_PROCESSES": (str(info.size), f"number of pods of {info.workload}"),
                "JAX_PROCESS_ID": rank(info, pod_set),
                "JAX_COORDINATOR_ADDRESS": (Late(lambda: address(info, PORT)), f"rank 0 of {info.workload}"),
            }
            _add(info, pod_set, self.name, variables)


class XGBoost:
    """What XGBoost's collective reads to find its tracker, which runs on rank 0."""

    name = "XGBoost"
    framework = "xgboost"
    RESERVED = ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")

    def validate(self, info: Info) -> Findings:
        """Reserved variables, one by one, in the words that clients know."""
        if info.framework != self.framework:
            return Findings()
        if not info.train_job:
            return reserved(info, self.RESERVED)
        return Findings(
            [
                FieldError(
                    f"{info.user_env.path}[{index}]",
                    f"{variable.name} is reserved for the XGBoost runtime",
                    variable.name,
                    "Forbidden",
                )
                for index, variable in enumerate(info.user_env.variables)
                if variable.name in self.RESERVED
            ]
        )

    def enforce_ml_policy(self, info: Info) -> None:
        """A worker for each GPU, else one in each pod."""
        for pod_set in info.trainers:
            devices = gpus(pod_set.target.requests) if pod_set.target else 0
            pod_set.slots = devices or 1
            why = f"{devices} GPUs of each pod" if devices else "one in each pod"
            variables: Variables = {
                "DMLC_TRACKER_URI": (Late(info.leader), f"rank 0 of {info.workload}"),
                "DMLC_TRACKER_PORT": (str(PORT), "default"),
                "DMLC_TASK_ID": rank(info, pod_set),
                "DMLC_NUM_WORKER": (str(info.size * pod_set.slots), f"number of pods of {info.workload}, {why}"),
            }
            _add(info, pod_set, self.name, variables)


def rank(info: Info, pod_set: PodSet) -> tuple[Late, str]:
    """The pod's rank and what it follows from."""
    return Late(lambda: pod_set.rank), f"index of the pod in {info.workload}"


def address(info: Info, port: int) -> str:
    """`host:port` of rank 0, where all others report."""
    return f"{text(info.leader())}:{port}"


def _add(info: Info, pod_set: PodSet, plugin: str, variables: Variables) -> None:
    for container in ([pod_set.target] if pod_set.target else []) + info.injections:
        container.set(plugin, yielding(info, variables))
    pod_set.port(PORT)
