"""What a job plugin is, and the flags that it takes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from controller.job.pods import Manifest
from controller.job.sync import Seat
from muster.api.base import Resource
from muster.api.batch import Job


class Owned(NamedTuple):
    """An object beside the pods, owned by the Job."""

    resource: Resource[Any]
    manifest: Manifest


class Plugin(Protocol):
    """One plugin of one Job. Both methods are pure, and may be called as often as one likes."""

    def objects(self, job: Job) -> list[Owned]:
        """The objects that must exist before the Job's pods; without owner, which the controller adds."""
        ...

    def shape(self, job: Job, seat: Seat, manifest: Manifest) -> None:
        """Adds to the pod of `seat`, in place."""
        ...


class PluginError(ValueError):
    """A Job asks for a plugin that cannot be had; the message is for the user."""


def flags(arguments: Sequence[str], defaults: Mapping[str, str | bool | int]) -> dict[str, Any]:
    """Arguments in the style of Go's flag package (`--k=v`, `-k v`, `--switch`) over their defaults.

    Unknown flags are passed over with their value, as manifests in the field carry some; a value that does not fit its
    flag's type leaves the default.
    """
    result = dict(defaults)
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            continue
        name, given, text = word.lstrip("-").partition("=")
        default = defaults.get(name)
        if not given and not isinstance(default, bool) and words and not words[0].startswith("-"):
            text = words.pop(0)
        if default is not None:
            result[name] = _value(text if given or not isinstance(default, bool) else "true", default)
    return result


_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _value(text: str, default: str | bool | int) -> str | bool | int:  # noqa: FBT001 - the type of a flag is its default's
    if isinstance(default, bool):
        return text in _TRUE or (default and text not in _FALSE)
    if isinstance(default, int):
        return int(text) if text.isascii() and text.isdigit() else default
    return text


def containers(manifest: Manifest, *, init: bool = True) -> list[Manifest]:
    """The pod's containers, with its init containers unless `init` is False."""
    spec = manifest["spec"]
    return [*((spec.get("initContainers") or []) if init else []), *(spec.get("containers") or [])]


def add_env(container: Manifest, variables: Sequence[Manifest]) -> None:
    """Adds variables that the container does not have yet: what the user wrote stays."""
    env = container["env"] = list(container.get("env") or [])
    present = {variable["name"] for variable in env}
    env.extend(variable for variable in variables if variable["name"] not in present)
