"""Order of the tests by their stored durations, and the groups that one worker runs one after the other.

The longest come first, so that no worker is idle at the end (`--dist loadgroup`). A test on a shared plane is a group
of its own, which any worker takes. Other groups are: half of the tests marked `alone`, each half with a plane; a module
with a fixture of its own for all its tests; a file of tests without a plane. `make durations` renews durations.json.
"""

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

from musterctl.plane.machine import write_private

SHARED: Final = "shared"
"""The plane of all tests that are marked neither `alone` nor `api`."""
API: Final = "api"
"""The plane of tests marked `api`: an API server with Muster's kinds, and nobody who acts on objects."""
ALONE: Final = ("alone-1", "alone-2")
"""Planes that serve one test at a time. Two, so that these tests keep two workers busy."""
PLANE_OF: Final = pytest.StashKey[dict[str, str]]()
"""The plane of each file's tests that are marked `alone`."""
FILE: Final = Path(__file__).parents[1] / "durations.json"
PLANE_TEST_S: Final = 5.0
"""Assumed of a test on a plane that has no stored duration."""
UNIT_TEST_S: Final = 0.02
"""Assumed of another one; shorter durations are not stored."""
_GROUPS: Final = "groups.json"
"""The file in which the first worker leaves the group of each test; the others find the same."""


def stored() -> dict[str, float]:
    """Return the stored seconds of each test."""
    found: dict[str, float] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


def store(seconds: Mapping[str, float]) -> None:
    """Store the seconds of each test that was run, and keep those of the others that still exist."""
    worth = {name: round(value, 1) for name, value in seconds.items() if value >= 2 * UNIT_TEST_S}
    kept = {name: value for name, value in stored().items() if name not in seconds}
    FILE.write_text(json.dumps({**kept, **worth}, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def seconds_of(item: pytest.Item, durations: Mapping[str, float]) -> float:
    """Return the seconds that a test is expected to take."""
    assumed = PLANE_TEST_S if item.get_closest_marker("plane") else UNIT_TEST_S
    return durations.get(item.nodeid, assumed)


def divided(seconds: Mapping[str, float], parts: Sequence[str]) -> dict[str, str]:
    """Divide modules among parts of about equal length: the longest first, each to the shortest part so far."""
    load = dict.fromkeys(parts, 0.0)
    found = {}
    for module, each in sorted(seconds.items(), key=lambda one: (-one[1], one[0])):
        part = min(load, key=lambda name: (load[name], name))
        load[part] += each
        found[module] = part
    return found


def is_alone(item: pytest.Item) -> bool:
    """Return True if a test needs its plane for itself."""
    return item.get_closest_marker("alone") is not None


def plane_name(item: pytest.Item) -> str:
    """Return the name of the plane on which a test runs."""
    if is_alone(item):
        return item.config.stash[PLANE_OF][module_of(item)]
    return API if item.get_closest_marker("api") else SHARED


def module_of(item: pytest.Item) -> str:
    """Return the file of a test."""
    return item.nodeid.partition("::")[0]


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test its group, and put the groups that take longest first; xdist keeps that order."""
    durations = stored()
    expected = {item.nodeid: seconds_of(item, durations) for item in items}
    alone = divided(_total(filter(is_alone, items), expected), ALONE)
    config.stash[PLANE_OF] = alone
    own = {module_of(item) for item in items if _has_module_fixture(item)}
    groups = {item.nodeid: _group(item, alone, own) for item in items}
    total: Counter[str] = Counter()
    for item in items:
        total[groups[item.nodeid]] += expected[item.nodeid]  # type: ignore[assignment]
    items.sort(key=lambda item: (-total[groups[item.nodeid]], groups[item.nodeid]))
    if (seed := config.getoption("shuffle")) is not None:
        shuffle(items, groups, seed)
    if getattr(config, "workerinput", {}).get("workerid") == "gw0":
        write_private(folder_of_run(config) / _GROUPS, json.dumps(groups).encode())


def shuffle(items: list[pytest.Item], groups: Mapping[str, str], seed: int) -> None:
    """Put the groups into another order, and in each its files, and in each of those its tests: the same for a seed."""

    def place(name: str) -> int:
        return zlib.crc32(f"{seed} {name}".encode())

    def key(item: pytest.Item) -> tuple[int, ...]:
        return tuple(map(place, (groups[item.nodeid], module_of(item), item.nodeid)))

    items.sort(key=key)


def _total(items: Iterable[pytest.Item], expected: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each file's tests."""
    found: dict[str, float] = defaultdict(float)
    for item in items:
        found[module_of(item)] += expected[item.nodeid]
    return found


def _group(item: pytest.Item, alone: Mapping[str, str], own: set[str]) -> str:
    module = module_of(item)
    if is_alone(item):
        return alone[module]
    if module in own or not item.get_closest_marker("plane"):
        return module
    return item.nodeid


def _has_module_fixture(item: pytest.Item) -> bool:
    """Return True if something is made once for the test's module, which two workers would make twice."""
    definitions = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 - pytest has no public name for it
    own = (each for all_ in definitions.values() for each in all_ if each.baseid == module_of(item))
    return any(each.scope != "function" for each in own) or "module_plane" in definitions


def folder_of_run(config: pytest.Config) -> Path:
    """Return the folder that all workers of a run have in common."""
    own: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return own.parent if hasattr(config, "workerinput") else own


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """xdist's distribution of groups of tests to workers, with the groups and the order that the workers found.

    xdist's own `loadgroup` writes groups into the tests' names, which pytest 9 does not allow any more.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._groups: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        """Return the group of a test."""
        if not self._groups:
            self._groups = json.loads((folder_of_run(self.config) / _GROUPS).read_text(encoding="utf-8"))
        return self._groups[nodeid]
