"""The runtime plugins in execution order: built-in plugins, then third-party plugins by name.

A third-party package names its plugin class in its metadata, so that Muster finds the plugin once the package is
installed:

    [project.entry-points."muster.runtime"]
    mpi-on-my-fabric = "my_package:MyPlugin"
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from muster.runtime.framework import Framework, RuntimePlugin
from muster.runtime.plugins.jobset import JobSetPlugin
from muster.runtime.plugins.mpi import MPIRuntime
from muster.runtime.plugins.muster_job import MusterJob
from muster.runtime.plugins.pod_groups import CoScheduling, Volcano
from muster.runtime.plugins.rules import TrainJobRules
from muster.runtime.plugins.simple import JAX, PlainML, TensorFlowRuntime, XGBoost
from muster.runtime.plugins.torch import Torch

ENTRY_POINTS = "muster.runtime"


def plugins() -> list[RuntimePlugin]:
    """Return a new instance of each built-in plugin, in fixed order."""
    return [
        TrainJobRules(),
        Torch(),
        MPIRuntime(),
        JAX(),
        XGBoost(),
        TensorFlowRuntime(),
        PlainML(),
        CoScheduling(),
        Volcano(),
        JobSetPlugin(),
        MusterJob(),
    ]


def framework(*more: RuntimePlugin, accelerators: Sequence[str] = ()) -> Framework:
    """Return the framework with all plugins: built-in ones, other packages' plugins by name, then `more`.

    `accelerators` are names of resources that count devices, or patterns of such names, in addition to the known ones.
    Raises a RuntimeError at start-up if a plugin cannot be loaded; the error names this plugin.
    """
    return Framework([*plugins(), *map(_load, installed()), *more], accelerators)


@cache
def installed() -> list[EntryPoint]:
    """Return the plugins of installed packages by name; the result of the first call is cached."""
    return sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)


def _load(entry: EntryPoint) -> RuntimePlugin:
    try:
        plugin: RuntimePlugin = entry.load()()
    except Exception as error:
        raise RuntimeError(f"plugin {entry.name} ({entry.value}) cannot be loaded: {error}") from error
    if not isinstance(getattr(plugin, "name", None), str):
        raise RuntimeError(f"plugin {entry.name} ({entry.value}) has no name: give its class a `name`")  # noqa: TRY004 - the package is at fault, not an argument
    return plugin
