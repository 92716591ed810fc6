"""The plugins in the order in which they run: the built-in ones, then those of other packages by name.

A package names its plugin in its metadata, and Muster finds it when both are installed (docs/plugins.md):

    [project.entry-points."muster.controller.plugins"]
    scratch = "my_package:Scratch"
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points

from muster.api.fields import FieldError
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.plugins import flags
from muster.volcano.plugins.base import Plugin, PluginError
from muster.volcano.plugins.env import Env
from muster.volcano.plugins.hcclrank import HCCLRank
from muster.volcano.plugins.mpi import MPI
from muster.volcano.plugins.pytorch import PyTorch
from muster.volcano.plugins.ray import Ray
from muster.volcano.plugins.ssh import SSH
from muster.volcano.plugins.svc import Svc
from muster.volcano.plugins.tensorflow import TensorFlow
from muster.volcano.plugins.third_party import ThirdParty

ENTRY_POINTS = "muster.controller.plugins"
"""Group of the entry points by which other packages add plugins."""


BUILT_IN: Mapping[str, type[Plugin]] = {
    plugin.name: plugin for plugin in (Env, Svc, SSH, PyTorch, TensorFlow, MPI, Ray, HCCLRank)
}


@cache
def known() -> Mapping[str, type[Plugin] | ThirdParty]:
    """Every installed plugin by name, in order; other packages cannot replace built-in ones."""
    entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    return {**BUILT_IN, **{name: ThirdParty(entries[name]) for name in sorted(entries.keys() - BUILT_IN.keys())}}


def plugins_for(wanted: Mapping[str, Sequence[str]]) -> list[Plugin]:
    """The Job's plugins in order. Raises PluginError with the names of all missing plugins."""
    found = known()
    missing = [name for name in wanted if name not in found]
    if missing:
        raise PluginError(f"spec.plugins: {', '.join(missing)}: unknown; the plugins are {', '.join(found)}")
    return [factory(wanted[name] or ()) for name, factory in found.items() if name in wanted]


def required(wanted: Mapping[str, Sequence[str]]) -> list[str]:
    """The plugins that the wanted ones need and that are not among them."""
    needs = [need for name, factory in known().items() if name in wanted for need in factory.requires]
    return [name for name in dict.fromkeys(needs) if name not in wanted]


def check(job: Job) -> Iterator[FieldError]:
    """The mistakes of a new Job, for which admission refuses it: missing plugins, and the findings of the others."""
    found = known()
    for name in sorted(job.spec.plugins.keys() - found.keys()):
        message = f"unable to find job plugin: {name}; the plugins are {', '.join(found)}"
        yield FieldError(f"spec.plugins[{name}]", message, name, "NotSupported")
    for plugin in _possible(job):
        yield from plugin.check(job)


def warnings(wanted: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence for each ignored flag: existing manifests have some, so they are no reason to refuse a Job."""
    return [
        sentence
        for name, factory in known().items()
        if name in wanted and (name in BUILT_IN or factory.flags)
        for sentence in flags.warnings(name, wanted[name] or (), factory.flags)
    ]


def ports(job: Job, task: TaskSpec) -> list[int]:
    """The ports that plugins open in each pod of the task."""
    opened: list[int] = []
    for plugin in _possible(job):
        with suppress(PluginError):
            opened += plugin.ports(job, task).values()
    return opened


def _possible(job: Job) -> Iterator[Plugin]:
    """The Job's plugins that can be made; the controller reports the others, and makes no pod of such a Job."""
    for name, factory in known().items():
        if name in job.spec.plugins:
            try:
                yield factory(job.spec.plugins[name] or ())
            except PluginError:
                continue
