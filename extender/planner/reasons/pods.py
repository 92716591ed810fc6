"""Messages about gangs that wait because of pods: missing pods, gated pods, and too many pods that are being placed."""

from collections.abc import Collection, Sequence

from muster.api import names
from muster.api.grammar import be, have, listed, many, verb
from muster.api.muster.reason import Sentence, constant, worded
from muster.api.volcano import scheduling

NOT_CREATED = "PodsNotCreated"
NOT_BOUND = "PodsNotBound"
GATED = "SchedulingGated"
TOO_FEW = scheduling.TOO_FEW_PODS
NOT_COMPARED = "NotComparedYet"
LATER = "TriedLater"
SLOT_LIMIT = "InFlightLimit"
WORLD_ENDED = scheduling.WORLD_ENDED
"""Reasons for a condition in the gang's PodGroup, as CamelCase words."""

not_compared = constant(
    "pods-not-compared",
    "the gang's affinities or device claims are still being compared with the pods of the cluster",
)

later = constant(
    "pods-later",
    "the gangs of the namespace have too many different shapes for one cycle; one of the next cycles tries this gang",
)


@worded("pods-too-few")
def too_few(have: int, wanted: int) -> str:
    """Members of the gang do not exist."""
    if wanted == 1:
        return "the pod that the gang needs for its start does not exist"
    return f"{have} of the {wanted} pods that start together exist"


left = Sentence(
    "pods-left",
    "namespace {namespace} no longer gives its pods a queue, so new pods are no members: give it the label "
    f"{names.QUEUE} again, without {names.MANAGED}=false, or delete the waiting pods; their owner creates them again "
    "without Muster's gate",
)
slot_limit = Sentence(
    "pods-slot-limit",
    "the gang waits until fewer slots are placed: placements of other gangs have {limit} or more slots without a bound "
    "pod",
)


@worded("pods-not-created")
def not_created(attempts: int, until: str) -> str:
    """The gang was placed `attempts` times, and its pods were not created in time."""
    times = "once" if attempts == 1 else f"{attempts} times in a row"
    return f"the gang's pods were not created in time, {times}; it is placed again at {until}, or once its pods exist"


@worded("pods-not-bound")
def not_bound(attempts: int, until: str) -> str:
    """The gang was placed `attempts` times, and its existing pods were not bound in time."""
    return f"the gang's pods were not bound in time, {attempts} times in a row; it is placed again at {until}"


@worded("pods-leaving")
def leaving(pods: int) -> str:
    """All existing pods of the gang are being deleted."""
    return (
        f"its {many(pods, 'pod') if pods > 1 else 'pod'} that exist{'s' if pods == 1 else ''} {be(pods)} being deleted"
    )


@worded("pods-world-ended")
def world_ended(ended: int) -> str:
    """Members of an elastic training job have succeeded, so no other member may start any more."""
    who = f"{many(ended, 'member')} of its elastic world"
    return f"{who} {have(ended)} succeeded, so no other member starts any more"


@worded("pods-gated")
def gated(pods: Sequence[str], gates: Collection[str]) -> str:
    """Pods wait for scheduling gates other than Muster's."""
    which = f"the scheduling {'gate' if len(gates) == 1 else 'gates'} {', '.join(gates)}"
    return f"{listed(pods)} {verb(len(pods), 'wait')} for {which}, not Muster's"
