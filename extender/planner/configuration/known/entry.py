"""The kinds of entries in the tables of known names."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

VOLCANO = "Volcano"
KAI = "KAI"


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """An action, or something else that has a name and no parts."""

    of: str = VOLCANO
    """The project that has it."""
    ours: str = ""
    """The name in Muster; empty: the same."""
    differs: str = ""
    """How what Muster does differs, a sentence without its full stop; empty if it does the same."""
    without: str = ""
    """Why it has no effect, in the same form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a plugin; its name may have a `*` for any text."""

    default: Any = None
    """Its value if the file does not say; None if that cannot be written down."""
    without: str = ""
    """Why it has no effect, a sentence without its full stop; empty if it does the same as in its project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(Name):
    """A switch of a plugin, which is true or false."""

    default: bool = True
    hooks: tuple[str, ...] = ()
    """The hooks that the plugin does not get if the switch is off; none: the switch has no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin(Name):
    """A plugin with its arguments."""

    arguments: Mapping[str, Argument] = field(default_factory=dict)
    switches: Mapping[str, Switch] = field(default_factory=dict)
    """Switches that mean something else for this plugin than for the others."""

    def argument(self, name: str) -> Argument | None:
        """The entry of an argument; None if it is not known."""
        exact = self.arguments.get(name)
        return exact or next((each for pattern, each in self.arguments.items() if fnmatchcase(name, pattern)), None)

    def joined(self, other: "Plugin") -> "Plugin":
        """This plugin, which another project has under the same name: it knows the arguments of both."""
        return replace(
            self,
            of=f"{other.of}, {self.of}",
            differs=self.differs or other.differs,
            arguments={**other.arguments, **self.arguments},
            switches={**other.switches, **self.switches},
        )
