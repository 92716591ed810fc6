"""The plugins of Volcano Jobs and their flags: one table for admission, which warns, and the controller, which obeys.

Arguments are in the style of Go's flag package (`--k=v`, `-k v`, `--switch`), as in Volcano. Unlike there, an unknown
flag does not hide those behind it.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, NamedTuple

ENTRY_POINTS = "muster.controller.plugins"
"""Group of the entry points by which other packages add plugins."""

Default = str | bool | int

FLAGS: Mapping[str, Mapping[str, Default]] = {
    "env": {},
    "svc": {"publish-not-ready-addresses": False, "disable-network-policy": False, "inject-hosts-env": True},
    "ssh": {
        "ssh-key-file-path": "/root/.ssh",
        "ssh-private-key": "",
        "ssh-public-key": "",
        "ssh-port": 22,
        "ssh-key-type": "ed25519",
    },
    "pytorch": {
        "master": "master",
        "worker": "worker",
        "port": 23456,
        "wait-master-enabled": False,
        "wait-master-image": "busybox:1.36.1",
        "wait-master-timeout": 300,
    },
    "tensorflow": {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator", "port": 2222},
    "mpi": {"master": "master", "worker": "worker", "port": 22},
    "ray": {
        "head": "head",
        "headContainer": "head",
        "worker": "worker",
        "workerContainer": "worker",
        "port": 6379,
        "dashboardPort": 8265,
        "clientPort": 10001,
    },
    "hcclrank": {"master": "master", "worker": "worker"},
}
"""The built-in plugins in the order in which they run, each with its flags and their defaults."""


class Parsed(NamedTuple):
    """Flags over their defaults, and the flags that mean nothing: unknown ones, and those whose value does not fit."""

    values: dict[str, Any]
    unknown: list[str]
    unfit: list[str]


def parse(arguments: Sequence[str], defaults: Mapping[str, Default]) -> Parsed:
    """The flags among `arguments`. Unknown ones are passed over with their value; an unfit value leaves the default."""
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
    """The value in the type of the flag's default; None if it does not fit. Every number is a port or a time in s."""
    if isinstance(default, bool):
        return True if text in _TRUE else False if text in _FALSE else None
    if isinstance(default, int):
        number = int(text) if text.isascii() and text.isdigit() else 0
        return number if 0 < number <= _HIGHEST_PORT else None
    return text or None


def flags(plugin: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The flags of a built-in plugin."""
    return parse(arguments, FLAGS[plugin]).values


def third_party() -> list[str]:
    """Names of the plugins that other packages add, sorted; a built-in one cannot be replaced."""
    return sorted({entry.name for entry in entry_points(group=ENTRY_POINTS)} - FLAGS.keys())


def warnings(plugins: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence for each flag of the built-in plugins that means nothing, with those that would."""
    result = []
    for plugin, defaults in FLAGS.items():
        parsed = parse(plugins.get(plugin) or (), defaults)
        known = f"its flags are {', '.join(defaults)}" if defaults else "it has no flags"
        result += [f"spec.plugins[{plugin}]: unknown flag {name} is ignored; {known}" for name in parsed.unknown]
        result += [
            f"spec.plugins[{plugin}]: the value of flag {name} does not fit; its default {_shown(defaults[name])} holds"
            for name in parsed.unfit
        ]
    return result


def _shown(default: Default) -> str:
    return str(default).lower() if isinstance(default, bool) else repr(default)
