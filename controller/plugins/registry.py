"""The plugins there are, in the order in which they run: the built-in ones, then those of other packages by name.

A package names its plugin in its metadata, and Muster finds it when both are installed (docs/plugins.md):

    [project.entry-points."muster.controller.plugins"]
    scratch = "my_package:Scratch"
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from controller.job.rules.pods import Manifest
from controller.job.rules.sync import PodSlot
from controller.plugins.base import Owned, Plugin, PluginError
from controller.plugins.env import Env
from controller.plugins.hcclrank import HCCLRank
from controller.plugins.mpi import MPI
from controller.plugins.pytorch import PyTorch
from controller.plugins.ray import Ray
from controller.plugins.ssh import SSH
from controller.plugins.svc import Svc
from controller.plugins.tensorflow import TensorFlow
from muster.api.batch import Job
from muster.runtime.job_plugins import ENTRY_POINTS, third_party

T = TypeVar("T")
Factory = Callable[[Sequence[str]], Plugin]

BUILT_IN: Mapping[str, Factory] = {
    "env": Env,
    "svc": Svc,
    "ssh": SSH,
    "pytorch": PyTorch,
    "tensorflow": TensorFlow,
    "mpi": MPI,
    "ray": Ray,
    "hcclrank": HCCLRank,
}


def plugins_for(wanted: Mapping[str, Sequence[str]]) -> list[Plugin]:
    """The Job's plugins in order. Raises PluginError that names every plugin which cannot be had."""
    found = known()
    missing = [name for name in wanted if name not in found]
    if missing:
        raise PluginError(f"spec.plugins: {', '.join(missing)}: unknown; the plugins are {', '.join(found)}")
    return [factory(wanted[name] or ()) for name, factory in found.items() if name in wanted]


@cache
def known() -> Mapping[str, Factory]:
    """Name → factory of every plugin that is installed, in order; other packages cannot replace built-in ones."""
    entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    return {**BUILT_IN, **{name: _lazily(entries[name]) for name in third_party()}}


def _lazily(entry: EntryPoint) -> Factory:
    """The factory behind an entry point."""
    return lambda arguments: _Guarded(entry, arguments)


class _Guarded:
    """A plugin of another package: what goes wrong in it concerns only the Jobs that ask for it, and is told there."""

    def __init__(self, entry: EntryPoint, arguments: Sequence[str]) -> None:
        self._name = entry.name
        self._plugin: Plugin = self._do(f"{entry.value} cannot be loaded", lambda: entry.load()(arguments))

    def objects(self, job: Job) -> list[Owned]:
        return self._do("objects failed", lambda: self._plugin.objects(job))

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        self._do("shape failed", lambda: self._plugin.shape(job, slot, manifest))

    def _do(self, what: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except PluginError:
            raise
        except Exception as error:
            raise PluginError(f"spec.plugins[{self._name}]: {what}: {type(error).__name__}: {error}") from error
