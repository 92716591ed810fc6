"""Plugins of other packages: an exception in one concerns only the Jobs that ask for it, and is reported there.

Such a plugin need not be a subclass of `Plugin`: methods that it lacks are those of `Plugin`.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from muster.api.fields import FieldError
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest
from muster.volcano.plugins.base import Owned, Plugin, PluginError
from muster.volcano.plugins.flags import Flags
from muster.volcano.slots import PodSlot

T = TypeVar("T")


class ThirdParty:
    """The plugin of an entry point; it is imported when a Job first asks for it."""

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry

    @property
    def flags(self) -> Flags:
        """Its flags; none if it has none, or cannot be imported."""
        found = self._said("flags")
        return found if isinstance(found, Mapping) else {}

    @property
    def requires(self) -> Sequence[str]:
        """The plugins that it needs; none if it names none, or cannot be imported."""
        found = self._said("requires")
        return [str(name) for name in found] if isinstance(found, tuple | list) else ()

    def __call__(self, arguments: Sequence[str], /) -> Plugin:
        """The plugin; PluginError if it cannot be loaded."""
        return Guarded(self._entry, arguments)

    def _said(self, attribute: str) -> Any:
        try:
            return getattr(self._entry.load(), attribute, None)
        except Exception:  # noqa: BLE001 - any: it is raised again, and reported, when the plugin is made
            return None


class Guarded(Plugin):
    """A plugin of another package: all its exceptions become PluginErrors."""

    def __init__(self, entry: EntryPoint, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self._name = entry.name
        self._plugin = self._do(f"{entry.value} cannot be loaded", lambda: entry.load()(arguments))
        self.env_in_init_containers = getattr(self._plugin, "env_in_init_containers", True) is True

    def check(self, job: Job) -> Sequence[FieldError]:
        """See `Plugin.check`; an exception refuses the Job, since it would not be reported elsewhere."""
        try:
            return self._do("check failed", lambda: list(self._method("check")(job)))
        except PluginError as error:
            return [FieldError(f"spec.plugins[{self._name}]", str(error), job.spec.plugins[self._name])]

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """See `Plugin.ports`."""
        return self._do(
            "ports failed", lambda: {str(name): int(port) for name, port in self._method("ports")(job, task).items()}
        )

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """See `Plugin.env`."""
        return self._do(
            "env failed",
            lambda: [{**variable, "name": str(variable["name"])} for variable in self._method("env")(job, slot)],
        )

    def objects(self, job: Job) -> Sequence[Owned]:
        """See `Plugin.objects`."""
        return self._do("objects failed", lambda: list(self._method("objects")(job)))

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """See `Plugin.shape`."""
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
