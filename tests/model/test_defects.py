"""The explorer finds each seeded defect, and tells it as a short story."""

import sys
from functools import partial

import pytest
from interleavings import defects, properties
from interleavings.explorer import explore
from interleavings.extender import ExtenderProcess
from interleavings.world import Rules, Scene

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800), pytest.mark.usefixtures("no_logs")]
MOST_WORLDS = 20_000
LONGEST_STORY = 60


@pytest.mark.parametrize("defect", defects.ALL, ids=lambda each: each.name)
def test_a_seeded_defect_is_found(defect: defects.Defect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same worlds hold without it: see test_two_gangs.py."""
    defect.seed(monkeypatch)
    scene = Scene(gangs=dict(defect.gangs), gated=defect.gated)
    rules = Rules(scene, partial(ExtenderProcess, forgetful=True))
    found = explore(
        rules,
        rules.first(defect.faults),
        check=properties.safe,
        at_rest=properties.at_rest,
        at_end=lambda world: properties.done(world, scene.gangs),
        most=MOST_WORLDS,
    )
    sys.stderr.write(f"\n{defect.name}: {found.told()}\n")
    assert found.failure
    assert len(found.story) <= LONGEST_STORY
