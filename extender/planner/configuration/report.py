"""The report of a scheduler configuration: names that mean something else here, or have no effect, and errors."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum


class Effect(Enum):
    """How a name that does not do what its project says differs in Muster."""

    DIFFERENT = "different"
    NONE = "no effect"


@dataclass(frozen=True, slots=True)
class Finding:
    """One name in a file that does not do what its project says."""

    path: str
    """Where it stands, e.g. `tiers[0].plugins[1].enablePreemptable`."""
    name: str
    effect: Effect
    why: str
    """A sentence without its full stop."""

    def __str__(self) -> str:
        """One line for people."""
        name = "" if self.path.endswith(self.name) else f"{self.name}: "
        return f"{self.path}: {name}{self.effect.value}: {self.why}"


@dataclass(slots=True)
class Report:
    """Everything about one file."""

    findings: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Sentences, each with the path in the file; a configuration with errors is not used."""

    def differs(self, path: str, name: str, why: str) -> None:
        """Notes that a name means something else here."""
        self.findings.append(Finding(path, name, Effect.DIFFERENT, why))

    def idle(self, path: str, name: str, why: str) -> None:
        """Notes that a name has no effect here."""
        self.findings.append(Finding(path, name, Effect.NONE, why))

    def unknown(self, path: str, what: str, name: str, valid: Iterable[str]) -> None:
        """Notes a name that neither project nor Muster knows."""
        self.errors.append(f"{path}: there is no {what} {name!r}; valid {what}s: {', '.join(sorted(valid)) or 'none'}")

    def of(self, effect: Effect) -> list[Finding]:
        """The findings of one kind."""
        return [finding for finding in self.findings if finding.effect is effect]

    def lines(self) -> Iterator[str]:
        """The report for people: errors first, then what is different, then what has no effect."""
        yield from (f"error: {error}" for error in self.errors)
        for effect in (Effect.DIFFERENT, Effect.NONE):
            yield from (str(finding) for finding in self.of(effect))
