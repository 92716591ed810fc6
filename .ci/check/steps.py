"""The checks of a commit: steps for every commit, and further steps of which each commit runs one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ALL = "all"
"""Value of --turns that selects all further steps."""


@dataclass(frozen=True)
class Step:
    """A command, with the pytest options for running files of its tests once more; None if its tests run only once."""

    name: str
    command: tuple[str, ...]
    again: tuple[str, ...] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables of the step, also at its second chance."""
    until_s: float = float("inf")
    """Seconds after the start of the check at which a running step is ended, which does not count as a failure."""


def _make(name: str, *arguments: str, again: tuple[str, ...] | None = None, **variables: str) -> Step:
    """Return a step that runs a target of make; the target has the step's name unless the arguments name another."""
    return Step(name, ("make", "--no-print-directory", *(arguments or (name,))), again, variables)


SETUP = _make("setup", "-j2", "setup", "binaries")
"""The step that builds the environment and the programs of the control plane. It runs first, so that concurrent steps
do not all build them."""
TEST = _make("test", again=("-m", "not slow and not long and not storm and not model and not consumer"))
TEST_SLOW = _make("test-slow", again=("-m", "slow and not long and not storm"))
"""The remaining tests of every commit, which run after `make test`."""
MODEL = "model"
SHORT_MODEL = _make("model-short", again=("-m", "not storm"))
BESIDE = (
    _make("lint"),
    _make("check-generated"),
    _make("docs"),
    _make("prose"),
    _make("workflows"),
    SHORT_MODEL,
    _make("consumers", again=("-m", "consumer")),
)
"""Steps that run one after the other while `make test` runs; most of their time is spent waiting."""

LATEST_TURN_S = 2700
"""Seconds after which a commit's further step does not begin."""
END_OF_TURN_S = 4200
"""Seconds after which a running further step is ended: the whole check has 90 minutes, also on a slow machine."""
END_S = 4800
"""Seconds after which a running step that every commit needs is ended; it then fails, and the table is still
printed."""

_NEIGHBOUR = "tests/neighbours/test_jobset.py -k 'starts_whole or deleted_in_the_middle or evicted_and_back'"
"""A neighbour (another project's controller) that is built within minutes, with a few of its tests; `make
e2e-neighbours` runs all."""


def turns(oldest: str) -> dict[str, Step]:
    """Return the further steps by name; `oldest` is the oldest version of Kubernetes, 1.32."""
    found = (
        _make(MODEL, again=("-m", "model and not storm")),
        *(_make(f"test-long-{k}", "test-long", f"PART={k}/6", again=("-m", "long and not storm")) for k in range(1, 7)),
        _make("test-versions", "test-versions", f"VERSIONS={oldest}", again=(), MUSTER_KUBERNETES=oldest),
        _make(
            "e2e-neighbours",
            "e2e-neighbours",
            f"NEIGHBOURS={_NEIGHBOUR}",
            again=("-m", "neighbour", "--timeout", "1800"),
        ),
        _make("e2e-real", again=("-m", "real")),
        _make("e2e-install", again=("-m", "install")),
        _make("e2e-web", again=("-m", "browser")),
        _make("mutants", "mutants", "N=30"),
    )
    return {step.name: step for step in found}


def chosen(names: Sequence[str], commit: str, asked: str) -> tuple[list[str], list[str]]:
    """Return the names of the further steps to run, and of replacements for steps that this machine cannot run.

    The commit's hash chooses one, so that a run can be repeated and all steps are run over time. The steps in `asked`
    ("all" or names) have no replacements. ValueError lists the existing names.
    """
    if asked == ALL:
        return list(names), []
    wanted = asked.split()
    if unknown := [name for name in wanted if name not in names]:
        raise ValueError(f"no turn is called {', '.join(unknown)}: --turns takes {ALL}, or some of {', '.join(names)}")
    if wanted:
        return wanted, []
    first = int(commit[:7], 16) % len(names)
    return [names[first]], [*names[first + 1 :], *names[:first]]
