"""The ports that plugins of a Volcano Job open in its pods.

On the network of the node a port is taken on the node: who plans the pods before they exist must know of it.
"""

from muster.api.batch import Job
from muster.runtime.job_plugins import flags

RAY_PORTS = {"gcs": "port", "dashboard": "dashboardPort", "client-server": "clientPort"}
"""Name of a port of ray's head → the flag that sets it."""


def plugin_ports(job: Job, task: str) -> list[int]:
    """The ports of each pod of the task."""
    plugins, tasks = job.spec.plugins, {each.name for each in job.spec.tasks}
    opened: list[int] = []
    if "mpi" in plugins:
        opened.append(flags("mpi", plugins["mpi"] or ())["port"])
    if "pytorch" in plugins:
        pytorch = flags("pytorch", plugins["pytorch"] or ())
        opened += [pytorch["port"]] if pytorch["master"] in tasks else []
    if "ray" in plugins:
        ray = flags("ray", plugins["ray"] or ())
        opened += [ray[flag] for flag in RAY_PORTS.values()] if task == ray["head"] else []
    return opened
