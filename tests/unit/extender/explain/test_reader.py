"""Who may not see all of the cluster reads the same reasons with other names, and none that are only words."""

import pytest
from explain_world import ExplainWorld

from extender.explain.find import explain
from extender.explain.reader import ALL, HIDDEN, UNTOLD, Viewer
from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf
from extender.planner.framework import decisions
from extender.planner.reasons import gangs, placements, queues
from extender.planner.reasons.shortages import Cause, Level, NearestMiss, Shortage, no_room
from muster.api.muster.reason import Reason, quoted

OWN = Viewer(lambda namespace, _: f"a gang of {len(namespace)} letters", lambda name: name == "ns", {"secret"})
THEIRS = gangs.of_queue(queue="secret")
REFUSED = queues.refusal(queues.OVER_CAPABILITY, "secret", "cpu", limit=1000, used=1000, asked=1000)


@pytest.mark.parametrize(("reason", "expected"), [
    (placements.reclaimed("secret"), f"reclaimed by queue {HIDDEN} for a gang of that queue"),
    (placements.reclaimed("open"), "reclaimed by queue open for a gang of that queue"),
    (queues.in_the_way([(THEIRS, ["n1"], None)]),
     f"the gang would run into the reservation of a gang of queue {HIDDEN} on n1, at a time that is not known"),
    (quoted(text="Job zz/secret is in the way"), str(UNTOLD)),
    (placements.preempted(1, "open").also(quoted(text="secret")), f"{placements.preempted(1, 'open')}; {UNTOLD}"),
])  # fmt: skip
def test_a_reason_is_told_with_the_names_that_may_be_seen(reason: Reason, expected: str) -> None:
    """Those of queues, wherever they are in it; words of others could have any name."""
    assert str(OWN.reason(reason)) == expected
    assert ALL.reason(reason) is reason


def test_what_a_gang_lacks_is_told_without_the_names_of_others() -> None:
    """In the sentence, in the counts, and in what is decided."""
    why = Reason(code="node-reserved", params={"gang": THEIRS})
    causes = (Cause(str(why), why, 1, 0, ("n1",)), Cause("bad secret", quoted(text="bad secret"), 1, 0, ("n2",)))
    miss = NearestMiss(1, "cpu", 1000, whole_nodes=False, levels=(Level(1, 1),))
    lacks = Shortage("pods", "together", 1, 0, {"cpu": 1000}, 2, 0, causes, miss)
    view = ExplainWorld().nodes(1)
    gang = view.view(view.gang("a", {"worker": (1, {"cpu": 1})}))
    waits = OWN.decision(decisions.Unschedulable(gang, "NotEnoughResources", no_room(lacks).also(REFUSED), lacks))
    for text in (waits.message, waits.shortage.message, str(waits.shortage.causes)):
        assert "secret" not in text
        assert f"reserved for a gang of queue {HIDDEN}" in text
    assert "secret" in lacks.message


def test_a_name_elsewhere_is_not_told_to_whom_may_not_see_it() -> None:
    """That there is such a name in a namespace says that there is the namespace."""
    world = ExplainWorld().nodes(1)
    world.gang("a", {"worker": (1, {"cpu": 1})})
    what_if = WhatIf(world.dump())
    for reader, told in ((ALL, True), (OWN, True), (Viewer(OWN.called, lambda _: False), False)):
        with pytest.raises(UnknownNameError) as error:
            explain(what_if, "gang", "a", "other", reader=reader)
        assert ("there is one in namespace ns" in str(error.value)) == told


def test_open_queues_are_named_to_whom_may_list_them() -> None:
    """A gang that names none that there is could use one of these."""
    world = ExplainWorld().nodes(1).queue("secret").queue("open")
    world.gang("a", {"worker": (1, {"cpu": 1})}, queue="missing", phase="Pending")
    for reader, told in ((ALL, "default, open, secret"), (OWN, "default, open")):
        report = explain(WhatIf(world.dump()), "gang", "a", "ns", reader=reader)
        assert [each.sentence for each in report.relief] == [f"queue 'missing' is created (open queues: {told})"]
