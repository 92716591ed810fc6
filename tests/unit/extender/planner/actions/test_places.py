"""Gangs that just fit: the planner finds nodes wherever an exhaustive search does, and breaks no requirement."""

import sys

import pytest
from places_world import KINDS, Case, Kind, Pods, broken, random_case

PROFILES = ("mixed", "balanced")


def placed(case: Case, profile: str = "mixed") -> dict[str, list[str]]:
    """The placement of the planner; empty if it finds none."""
    world, key = case.world(profile)
    world.plan()
    return world.placed(key)


def test_a_leader_makes_way_for_its_workers() -> None:
    """It takes the node on which no worker is lost, wherever that is."""
    leader = Pods("leader", 1, 1, required="rack", group=True)
    case = Case({"b0r0n0": (4, 8), "b0r0n1": (3, 8)}, (leader, Pods("worker", 3, 2, required="rack", group=True)))
    assert placed(case) == {"leader": ["b0r0n1"], "worker": ["b0r0n0", "b0r0n0", "b0r0n1"]}


def table(kind: Kind, worlds: int, profile: str) -> tuple[int, int, list[int]]:
    """Random worlds in which a gang of this kind fits, how many of them the planner finds, and the seeds of others."""
    fits, missed = 0, []
    for seed in range(worlds):
        case = random_case(kind, seed)
        if case is None:
            continue
        fits += 1
        found = placed(case, profile)
        if not found:
            missed.append(seed)
            continue
        assert broken(case, found) == "", f"{kind} {seed}: {case} → {found}"
    return fits, fits - len(missed), missed


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_fits_is_found(kind: Kind, profile: str) -> None:
    """In a few random worlds."""
    fits, found, missed = table(kind, 40, profile)
    assert fits > 20, "the worlds say something"
    assert found >= 0.99 * fits - 1, f"{kind}: worlds {missed} of {fits} are not found"


@pytest.mark.storm
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_nearly_all_that_fits_is_found(kind: Kind, profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In many random worlds; the table is printed."""
    fits, found, missed = table(kind, 1000, profile)
    with capsys.disabled():
        sys.stdout.write(f"\n{kind:8} {profile:8} {found} of {fits} found ({found / fits:.2%}), not in {missed[:12]}\n")
    assert found >= 0.99 * fits
