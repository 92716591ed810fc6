"""All interleavings of two gangs of two pods on three nodes, of which each node takes one pod, with one fault each."""

import sys
from functools import partial

import pytest
from interleavings import properties
from interleavings.explorer import Found, explore
from interleavings.extender import ExtenderProcess
from interleavings.world import Faults, Rules, Scene

pytestmark = [pytest.mark.model, pytest.mark.timeout(3600), pytest.mark.usefixtures("no_logs")]
ONE, TWO = {"a": 2}, {"a": 2, "b": 2}


def explored(scene: Scene, faults: Faults, *, forgetful: bool = False) -> Found:
    """Explore a world in full, and print what was visited."""
    rules = Rules(scene, partial(ExtenderProcess, forgetful=forgetful, steady=not faults.slow))
    found = explore(
        rules,
        rules.first(faults),
        check=properties.safe,
        at_rest=properties.at_rest,
        at_end=lambda world: properties.done(world, scene.gangs),
    )
    sys.stderr.write(f"\n{scene.gangs} {faults}: {found}; {rules.extender}\n")
    assert not found.failure, found.told()
    assert found.complete
    assert found.ends, "no world came to an end"
    return found


def test_two_gangs() -> None:
    """Both end, one after the other, whatever the order of all steps."""
    explored(Scene(gangs=TWO), Faults())


@pytest.mark.parametrize(
    "faults", [Faults(crash=1), Faults(lost=1), Faults(stale=1), Faults(refuse=1), Faults(delete=1)], ids=str
)
def test_one_gang(faults: Faults) -> None:
    """A gang ends, or is gone where its user has deleted it."""
    explored(Scene(gangs=ONE), faults)


@pytest.mark.parametrize("in_turn", [True, pytest.param(False, marks=pytest.mark.storm)], ids=["in_turn", "any_order"])
def test_one_gang_and_a_crash_of_kube_scheduler(*, in_turn: bool) -> None:
    """It forgets which pods it was to bind, and its calls are answered all the same."""
    explored(Scene(gangs=ONE, in_turn=in_turn), Faults(scheduler_crash=1), forgetful=True)


def test_a_gang_without_gates() -> None:
    """kube-scheduler asks about pods that are not planned yet: the filter verb holds them back."""
    explored(Scene(gangs=ONE, gated=False), Faults(crash=1))


@pytest.mark.parametrize("faults", [Faults(crash=1), Faults(lost=1)], ids=str)
def test_two_gangs_and_a_fault(faults: Faults) -> None:
    """The extender dies, or an answer of the API server is lost, at any moment."""
    explored(Scene(gangs=TWO), faults, forgetful=True)


@pytest.mark.parametrize(
    "faults", [Faults(stale=1), Faults(refuse=1), Faults(delete=1), Faults(scheduler_crash=1)], ids=str
)
def test_two_gangs_and_a_fault_in_turn(faults: Faults) -> None:
    """A watch falls behind, kube-scheduler refuses a pod where it is planned, or dies, or a user deletes a gang."""
    explored(Scene(gangs=TWO, in_turn=True), faults, forgetful=True)


@pytest.mark.parametrize("node", ["n0", "n2"])
def test_two_gangs_and_a_node_that_is_lost(node: str) -> None:
    """A gang that is there is placed anew, and its pods are made anew; the first gang leaves n2 free."""
    explored(Scene(gangs=TWO, in_turn=True, lost=[node]), Faults(node=1), forgetful=True)


@pytest.mark.storm
def test_two_gangs_and_the_second_node_that_is_lost() -> None:
    """The first member may be bound by then: it has to go, too; there are many more worlds."""
    explored(Scene(gangs=TWO, in_turn=True, lost=["n1"]), Faults(node=1), forgetful=True)


def test_one_gang_and_a_pause() -> None:
    """Everybody stands still for 31 s at any moment."""
    explored(Scene(gangs=ONE, in_turn=True), Faults(slow=1), forgetful=True)


@pytest.mark.storm
def test_one_gang_and_four_faults() -> None:
    """A crash, a lost answer, a stale watch and a lost node in one run, at any moments."""
    explored(Scene(gangs=ONE), Faults(crash=1, lost=1, stale=1, node=1), forgetful=True)
