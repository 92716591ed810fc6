"""The plugins in the order in which they run: the built-in ones, then those of third parties by name.

A third party's package names its plugin class in its metadata, and Muster finds it when both are installed:

    [project.entry-points."muster.runtime"]
    mpi-on-my-fabric = "my_package:MyPlugin"
"""

from importlib.metadata import EntryPoint, entry_points

from muster.runtime.framework import Framework, Plugin
from muster.runtime.plugins.jobset import JobSet
from muster.runtime.plugins.mpi import MPI
from muster.runtime.plugins.muster_job import MusterJob
from muster.runtime.plugins.pod_groups import CoScheduling, Volcano
from muster.runtime.plugins.rules import Rules
from muster.runtime.plugins.simple import JAX, PlainML, TensorFlow, XGBoost
from muster.runtime.plugins.torch import Torch

ENTRY_POINTS = "muster.runtime"


def plugins() -> list[Plugin]:
    """Return a new instance of each built-in plugin, in fixed order."""
    return [
        Rules(),
        Torch(),
        MPI(),
        JAX(),
        XGBoost(),
        TensorFlow(),
        PlainML(),
        CoScheduling(),
        Volcano(),
        JobSet(),
        MusterJob(),
    ]


def framework(*more: Plugin) -> Framework:
    """Return the framework with all plugins, those of other packages by name, and `more` at the end.

    RuntimeError names a plugin that cannot be loaded, at start-up.
    """
    found = sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)
    return Framework([*plugins(), *map(_load, found), *more])


def _load(entry: EntryPoint) -> Plugin:
    try:
        plugin: Plugin = entry.load()()
    except Exception as error:
        raise RuntimeError(f"plugin {entry.name} ({entry.value}) cannot be loaded: {error}") from error
    if not isinstance(getattr(plugin, "name", None), str):
        raise RuntimeError(f"plugin {entry.name} ({entry.value}) has no name: give its class a `name`")  # noqa: TRY004 - the package is at fault, not an argument
    return plugin
