"""The job plugins in execution order: built-in plugins, then plugins of other packages by name.

Another package names its plugin in its metadata, so that Muster finds the plugin once the package is installed
(docs/jobs.md):

    [project.entry-points."muster.controller.plugins"]
    scratch = "my_package:Scratch"
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from muster.api.fields import FieldError
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest
from muster.volcano.plugins.base import Flags, JobPlugin, Owned, PluginError, flag_warnings
from muster.volcano.plugins.frameworks import Env, HCCLRank, MPIJobPlugin, PyTorch, TensorFlowJobPlugin
from muster.volcano.plugins.ray import Ray
from muster.volcano.plugins.ssh import SSH
from muster.volcano.plugins.svc import Svc
from muster.volcano.tasks import PodSlot

T = TypeVar("T")


class ThirdParty:
    """The plugin of an entry point, which is imported when a Job first names it."""

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry

    @property
    def flags(self) -> Flags:
        """The plugin's flags; empty for a plugin that has no flags or cannot be imported."""
        found = self._attribute("flags")
        return found if isinstance(found, Mapping) else {}

    @property
    def requires(self) -> Sequence[str]:
        """Other plugins that the plugin needs; empty for a plugin that needs none or cannot be imported."""
        found = self._attribute("requires")
        return [str(name) for name in found] if isinstance(found, tuple | list) else ()

    def __call__(self, arguments: Sequence[str], /) -> JobPlugin:
        """Create the plugin; raises PluginError if it cannot be loaded."""
        return Guarded(self._entry, arguments)

    def _attribute(self, attribute: str) -> Any:
        try:
            return getattr(self._entry.load(), attribute, None)
        except Exception:  # noqa: BLE001 - any: it is raised again, and reported, when the plugin is made
            return None


class Guarded(JobPlugin):
    """Wrapper of another package's plugin, which converts all exceptions to PluginErrors."""

    def __init__(self, entry: EntryPoint, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self._name = entry.name
        self._plugin = self._do(f"{entry.value} cannot be loaded", lambda: entry.load()(arguments))
        self.env_in_init_containers = getattr(self._plugin, "env_in_init_containers", True) is True

    def check(self, job: Job) -> Sequence[FieldError]:
        """Call the plugin's `check`.

        An exception in `check` rejects the Job, because the error would not be reported elsewhere.
        """
        try:
            return self._do("check failed", lambda: list(self._method("check")(job)))
        except PluginError as error:
            return [FieldError(f"spec.plugins[{self._name}]", str(error), job.spec.plugins[self._name])]

    def warn(self, job: Job) -> Sequence[str]:
        """Call the plugin's `warn`; an exception becomes a warning."""
        try:
            return self._do("warn failed", lambda: [str(each) for each in self._method("warn")(job)])
        except PluginError as error:
            return [str(error)]

    def world(self, tasks: Collection[str]) -> Collection[str]:
        """See `JobPlugin.world`."""
        return self._do("world failed", lambda: {str(task) for task in self._method("world")(tasks)})

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """See `JobPlugin.ports`."""
        return self._do(
            "ports failed", lambda: {str(name): int(port) for name, port in self._method("ports")(job, task).items()}
        )

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """See `JobPlugin.env`."""
        return self._do(
            "env failed",
            lambda: [{**variable, "name": str(variable["name"])} for variable in self._method("env")(job, slot)],
        )

    def objects(self, job: Job) -> Sequence[Owned]:
        """See `JobPlugin.objects`."""
        return self._do("objects failed", lambda: list(self._method("objects")(job)))

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """See `JobPlugin.shape`."""
        self._do("shape failed", lambda: self._method("shape")(job, slot, manifest))

    def _method(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._plugin, name, None) or getattr(super(), name)
        return method

    def _do(self, what: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except PluginError:
            raise
        except Exception as error:
            raise PluginError(f"spec.plugins[{self._name}]: {what}: {type(error).__name__}: {error}") from error


ENTRY_POINTS = "muster.controller.plugins"
"""Group of the entry points with which other packages add plugins."""


BUILT_IN: Mapping[str, type[JobPlugin]] = {
    plugin.name: plugin for plugin in (Env, Svc, SSH, PyTorch, TensorFlowJobPlugin, MPIJobPlugin, Ray, HCCLRank)
}


@cache
def known() -> Mapping[str, type[JobPlugin] | ThirdParty]:
    """Return every installed plugin by name, in order; other packages cannot replace built-in plugins."""
    entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    return {**BUILT_IN, **{name: ThirdParty(entries[name]) for name in sorted(entries.keys() - BUILT_IN.keys())}}


def plugins_for(wanted: Mapping[str, Sequence[str]]) -> list[JobPlugin]:
    """Return the Job's plugins in order. Raises PluginError with the names of all plugins that are not installed."""
    found = known()
    missing = [name for name in wanted if name not in found]
    if missing:
        raise PluginError(f"spec.plugins: {', '.join(missing)}: unknown; the plugins are {', '.join(found)}")
    return [factory(wanted[name] or ()) for name, factory in found.items() if name in wanted]


def world(wanted: Mapping[str, Sequence[str]], tasks: Collection[str]) -> set[str]:
    """Return the tasks of which a plugin passes the pod names, or the number of pods, to running pods."""
    found = set[str]()
    for plugin in _possible(wanted):
        with suppress(PluginError):
            found.update(plugin.world(tasks))
    return found.intersection(tasks)


def required(wanted: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the plugins that these plugins need and that the Job does not name."""
    needs = [need for name, factory in known().items() if name in wanted for need in factory.requires]
    return [name for name in dict.fromkeys(needs) if name not in wanted]


def check_plugins(job: Job) -> Iterator[FieldError]:
    """Yield the errors for which admission rejects a new Job: missing plugins, and errors that plugins find."""
    found = known()
    for name in sorted(job.spec.plugins.keys() - found.keys()):
        message = f"unable to find job plugin: {name}; the plugins are {', '.join(found)}"
        yield FieldError(f"spec.plugins[{name}]", message, name, "NotSupported")
    for plugin in _possible(job.spec.plugins):
        yield from plugin.check(job)


def warnings(job: Job) -> list[str]:
    """Return a sentence for each ignored flag or field.

    Ignored flags and fields are not rejected, because existing manifests contain them.
    """
    wanted = job.spec.plugins
    ignored = [
        sentence
        for name, factory in known().items()
        if name in wanted and (name in BUILT_IN or factory.flags)
        for sentence in flag_warnings(name, wanted[name] or (), factory.flags)
    ]
    return [*ignored, *(sentence for plugin in _possible(job.spec.plugins) for sentence in plugin.warn(job))]


def ports(job: Job, task: TaskSpec) -> list[int]:
    """Return the ports that plugins open in each pod of the task."""
    opened: list[int] = []
    for plugin in _possible(job.spec.plugins):
        with suppress(PluginError):
            opened += plugin.ports(job, task).values()
    return opened


def _possible(wanted: Mapping[str, Sequence[str]]) -> Iterator[JobPlugin]:
    """Yield a Job's plugins that can be created.

    For a plugin that cannot be created, the controller reports the reason and creates no pods of the Job.
    """
    for name, factory in known().items():
        if name in wanted:
            try:
                yield factory(wanted[name] or ())
            except PluginError:
                continue
