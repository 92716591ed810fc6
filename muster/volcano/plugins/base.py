"""The base class of job plugins, and checks that several plugins share."""

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
"""Maps a flag to its default value; the type of the default is the type of all values of the flag."""


class Parsed(NamedTuple):
    """Values of a plugin's flags, with defaults, and the ignored flags, which are unknown or have an invalid value."""

    values: dict[str, Any]
    unknown: list[str]
    unfit: list[str]


def parse_flags(arguments: Sequence[str], defaults: Flags) -> Parsed:
    """Parse the flags in `arguments`.

    An unknown flag is ignored, together with its value. A flag with an invalid value keeps its default.
    """
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
    """Return the value, converted to the type of the flag's default; None for an invalid value.

    A flag with a number is a port or a number of seconds.
    """
    if isinstance(default, bool):
        return True if text in _TRUE else False if text in _FALSE else None
    if isinstance(default, int):
        number = whole_number(text)
        return number if number and number <= _HIGHEST_PORT else None
    return text or None


def flag_warnings(plugin: str, arguments: Sequence[str], defaults: Flags) -> list[str]:
    """Return a sentence for each ignored flag of a plugin, which lists the plugin's flags."""
    parsed = parse_flags(arguments, defaults)
    known = f"its flags are {', '.join(defaults)}" if defaults else "it has no flags"
    return [
        *(f"spec.plugins[{plugin}]: unknown flag {name} is ignored; {known}" for name in parsed.unknown),
        *(
            f"spec.plugins[{plugin}]: the value of flag {name} is invalid; its default {_shown(defaults[name])} is used"
            for name in parsed.unfit
        ),
    ]


def _shown(default: Default) -> str:
    return str(default).lower() if isinstance(default, bool) else repr(default)


class PluginError(ValueError):
    """Raised if a Job's plugin is missing or cannot work; the message is for the user."""


class SSHKeyFiles(Protocol):
    """A pair of ssh keys in their file formats."""

    @property
    def private(self) -> bytes:
        """The private key as bytes."""

    @property
    def public(self) -> bytes:
        """The public key as a line of authorized_keys."""


class KeyMaker(Protocol):
    """Generator of ssh key pairs (`certs.ssh`), because plugins use no random numbers."""

    def key_pair(self, kind: Literal["ed25519", "rsa"], /) -> SSHKeyFiles:
        """Return a new key pair."""

    def pair_of(self, private: bytes, /) -> SSHKeyFiles:
        """Return the key pair of a private key; raises ValueError if the key is unreadable."""


class Owned(NamedTuple):
    """An object, other than a pod, that the Job owns."""

    resource: Resource[Any]
    manifest: Manifest
    made_once: Callable[[], Mapping[str, str]] | None = None
    """Function that returns additional entries of `data` (in base64), such as a token. The function is called once,
    when the object is created, and the entries never change."""
    keys: Callable[[KeyMaker], Mapping[str, str]] | None = None
    """Function that returns entries with ssh keys, which is called when the object is created. Raises PluginError if
    the user's own keys are unreadable."""


class JobPlugin:
    """Base class of a job plugin, created from its arguments for one Job.

    A subclass overrides the methods that it needs. All methods are pure, and may be called any number of times, even
    for a Job that is never created. The methods and the constructor may raise PluginError. The Job then does not start,
    and its status contains the reason.
    """

    name: ClassVar[str]
    """The plugin's name in `spec.plugins`. Another package's plugin needs no name, because its entry point has one."""
    flags: ClassVar[Flags] = {}
    """The plugin's flags and their defaults."""
    requires: ClassVar[Sequence[str]] = ()
    """Other plugins that this plugin needs; admission adds them to the Job."""
    env_in_init_containers: bool = True
    """True if init containers also get the variables that `env` returns."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.values = parse_flags(arguments, self.flags).values
        """Values of the flags in the Job."""

    def world(self, tasks: Collection[str]) -> Collection[str]:
        """Return the tasks of which the plugin passes the pod names, or the number of pods, to running pods.

        While pods run, the pod names and the number of pods of these tasks must not change.
        """
        return ()

    def check(self, job: Job) -> Iterable[FieldError]:
        """Return the errors in a new Job that has tasks, for which admission rejects the Job."""
        return ()

    def warn(self, job: Job) -> Iterable[str]:
        """Return warnings, each with a path, about fields of a new Job that the plugin interprets in an unusual way."""
        return ()

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """Return the ports that `shape` opens in the task's pods, by name.

        For pods on the node's own network, the planner counts these ports as used before the pods exist.
        """
        return {}

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Return variables for the containers of the slot's pod; a container's own variable of that name stays."""
        return ()

    def objects(self, job: Job) -> Sequence[Owned]:
        """Return the objects that must exist before the Job's pods; the controller adds the owner."""
        return ()

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Make all other additions to the pod of `slot`, in place; the pod already has the variables from `env`."""


def unfit_for_a_service(job: Job, plugin: str) -> Iterator[FieldError]:
    """Yield an error for `check` if the Job's name is not valid as the name of a Service.

    Names of Services have stricter rules (RFC 1035) than names of pods in all but the newest Kubernetes.
    """
    name = job.metadata.name or job.metadata.generate_name
    if name[:1].isdigit():
        message = (
            f"must begin with a letter, because plugin {plugin} creates a Service with the Job's name; "
            "without the plugin, the name may begin with a digit"
        )
        yield FieldError("metadata.name", message, name)


def missing_task(job: Job, plugin: str, flag: str, task: str) -> Iterator[FieldError]:
    """Yield an error for `check` if the Job has no task with the name in the plugin's flag `flag`."""
    there = [each.name for each in job.spec.tasks]
    if task not in there:
        message = (
            f"The specified {plugin} {flag} task was not found: it must be one of the tasks "
            f"{', '.join(there)}, for example --{flag}={there[0]}"
        )
        yield FieldError(f"spec.plugins[{plugin}]", message, job.spec.plugins[plugin])
