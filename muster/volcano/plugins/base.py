"""The base class of job plugins, and the checks that several of them share."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.limits import whole_number
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest
from muster.volcano.tasks import PodSlot

Default = str | bool | int
Flags = Mapping[str, Default]
"""Flag → its default, which also has the type of its values."""


class Parsed(NamedTuple):
    """Flags with defaults filled in, and the ignored ones: unknown flags, and flags whose value does not fit."""

    values: dict[str, Any]
    unknown: list[str]
    unfit: list[str]


def parse_flags(arguments: Sequence[str], defaults: Flags) -> Parsed:
    """Return the flags in `arguments`. An unknown one is ignored with its value; an unfit value leaves the default."""
    result = Parsed(dict(defaults), [], [])
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            continue
        name, given, text = word.lstrip("-").partition("=")
        default = defaults.get(name)
        if not given and not isinstance(default, bool) and words and not words[0].startswith("-"):
            text = words.pop(0)
        if default is None:
            result.unknown.append(name)
            continue
        value = _value(text if given or not isinstance(default, bool) else "true", default)
        if value is None:
            result.unfit.append(name)
        else:
            result.values[name] = value
    return result


_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_HIGHEST_PORT = 65535


def _value(text: str, default: Default) -> Default | None:
    """Return the value in the type of the flag's default, None if it does not fit. Numbers are ports or seconds."""
    if isinstance(default, bool):
        return True if text in _TRUE else False if text in _FALSE else None
    if isinstance(default, int):
        number = whole_number(text)
        return number if number and number <= _HIGHEST_PORT else None
    return text or None


def flag_warnings(plugin: str, arguments: Sequence[str], defaults: Flags) -> list[str]:
    """Return a sentence for each ignored flag of a plugin, with the flags that it has."""
    parsed = parse_flags(arguments, defaults)
    known = f"its flags are {', '.join(defaults)}" if defaults else "it has no flags"
    return [
        *(f"spec.plugins[{plugin}]: unknown flag {name} is ignored; {known}" for name in parsed.unknown),
        *(
            f"spec.plugins[{plugin}]: the value of flag {name} does not fit; its default {_shown(defaults[name])} holds"
            for name in parsed.unfit
        ),
    ]


def _shown(default: Default) -> str:
    return str(default).lower() if isinstance(default, bool) else repr(default)


class PluginError(ValueError):
    """A Job names a plugin that is missing or cannot work; the message is for the user."""


class SSHKeyFiles(Protocol):
    """A pair of ssh keys, as files hold them."""

    @property
    def private(self) -> bytes:
        """The private key."""

    @property
    def public(self) -> bytes:
        """The line of authorized_keys for it."""


class KeyMaker(Protocol):
    """The maker of pairs of ssh keys (`certs.ssh`): plugins draw no random numbers."""

    def key_pair(self, kind: Literal["ed25519", "rsa"], /) -> SSHKeyFiles:
        """Return a new pair."""

    def pair_of(self, private: bytes, /) -> SSHKeyFiles:
        """Return the pair of a private key; ValueError if it cannot be read."""


class Owned(NamedTuple):
    """An object in addition to the pods, owned by the Job."""

    resource: Resource[Any]
    manifest: Manifest
    made_once: Callable[[], Mapping[str, str]] | None = None
    """More entries of `data` (base64), made when the object is created and kept from then on: a token, for example."""
    keys: Callable[[KeyMaker], Mapping[str, str]] | None = None
    """The same for entries that hold ssh keys; PluginError if the user's own keys cannot be read."""


class JobPlugin:
    """One plugin, made from its arguments for one Job. A subclass overrides the methods that it needs.

    All methods are pure and may be called any number of times, also for a Job that is never created. They and the
    constructor may raise PluginError: then the Job does not start, and its status has the reason.
    """

    name: ClassVar[str]
    """Its name in `spec.plugins`; a plugin of another package needs none, as its entry point has one."""
    flags: ClassVar[Flags] = {}
    """Its flags and their defaults."""
    requires: ClassVar[Sequence[str]] = ()
    """Plugins that it needs: admission adds them to the Job."""
    env_in_init_containers: bool = True
    """False: init containers do not get the variables of `env`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.values = parse_flags(arguments, self.flags).values
        """The flags as the Job has them."""

    def world(self, tasks: Collection[str]) -> Collection[str]:
        """Return which of a Job's tasks get the number or the names of their pods: it is fixed while these run."""
        return ()

    def check(self, job: Job) -> Iterable[FieldError]:
        """Return the mistakes of a new Job with tasks, for which admission refuses it."""
        return ()

    def warn(self, job: Job) -> Iterable[str]:
        """Return warnings of fields of a new Job that the plugin gives another meaning, each with its path."""
        return ()

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """Return the ports, by name, that `shape` opens in the task's pods.

        On the node's own network the planner counts them as taken on the node, before the pods exist.
        """
        return {}

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Return variables for the containers of the slot's pod, added unless a container has one of that name."""
        return ()

    def objects(self, job: Job) -> Sequence[Owned]:
        """Return the objects that must exist before the Job's pods; without owner, which the controller adds."""
        return ()

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Add everything else to the pod of `slot`, in place; it has its variables already."""


def unfit_for_a_service(job: Job, plugin: str) -> Iterator[FieldError]:
    """Yield an error, for `check`, if the Job's name is not valid for a Service.

    Names of Services are stricter than those of pods (RFC 1035) in all but the newest Kubernetes.
    """
    name = job.metadata.name or job.metadata.generate_name
    if name[:1].isdigit():
        message = (
            f"must begin with a letter, as plugin {plugin} makes a Service that is named after the Job; "
            "without the plugin it may begin with a digit"
        )
        yield FieldError("metadata.name", message, name)


def missing_task(job: Job, plugin: str, flag: str, task: str) -> Iterator[FieldError]:
    """Yield an error, for `check`, if the Job has no task of this name, which `flag` of the plugin gives."""
    there = [each.name for each in job.spec.tasks]
    if task not in there:
        message = (
            f"The specified {plugin} {flag} task was not found: it must be one of the tasks "
            f"{', '.join(there)}, for example --{flag}={there[0]}"
        )
        yield FieldError(f"spec.plugins[{plugin}]", message, job.spec.plugins[plugin])
