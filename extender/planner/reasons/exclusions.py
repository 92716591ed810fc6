"""Reasons why an object cannot be evaluated and is excluded, as messages for its owner."""

from muster.api.limits import LimitError
from muster.api.muster.reason import Sentence

EXCLUDED = "SetAside"
"""Reason for the condition of a gang that is excluded because it exceeds a limit or has caused an unexpected error."""
SHOWN_CHARS = 300
"""Maximum number of shown characters of an error message, which may quote the user's object at length."""

excluded = Sentence("set-aside", "{why}")
composite = (
    "the gang is part of CompositePodGroup {parent}, whose groups belong together, but Muster plans each PodGroup "
    "alone: its pods would not start together with the pods of the other groups. Put all their pods into one PodGroup "
    "(PodGroups of scheduling.volcano.sh can have sub-groups: subGroupPolicy), or use another scheduler for them"
).format
composite_missing = "the gang is part of CompositePodGroup {parent}, which does not exist or cannot be read".format
same_name = (
    "PodGroup {name} of {one} and PodGroup {native} of {other} belong to the same gang by their names; delete or "
    "rename one of the two"
).format
pod = "pod {pod} cannot be evaluated: {why}".format
MIN_MEMBER = "its minMember is"
PODS = "it has"
JOB_PODS = "its Job requests"
JOB_TASKS = "its Job has"
GROUP_TASKS = "its minTaskMember has"
SPEC = "its spec has"
TEMPLATE = "the fields of its Job's pod template that Muster reads have"
NEXT_EPOCH = "the epoch of its next placement would be"
over_limit = "{what} {value}; at most {limit.value} {limit.unit} are allowed".format
asks_too_much = "pods of {pod_set} request {count} {limit.unit}, but at most {limit.value} are allowed".format
too_many_sub_groups = "the gang has {count} {limit.unit} by labels; at most {limit.value} are allowed".format
too_many_looks = (
    "the selectors of the gang's subGroupPolicy are compared with too many pods: at most {limit.value} {limit.unit} "
    "are allowed; give each policy a label in matchLabels that only its own pods have"
).format
crossed_slices = (
    "pods of {pod_set} are grouped by {outer} and by {inner}, but neither size divides the other; choose a slice size "
    "that divides the partition size, or the reverse"
).format
crossed_labels = (
    "the template of {pod_set} and the labels of subGroupPolicy request different groups of pods, and neither is "
    "within the other; remove one of the two"
).format
too_many_terms = (
    "the gang's affinities and topology spread constraints have {count} {limit.unit}; at most {limit.value} are allowed"
).format
too_many_wishes = (
    "pods of {pod_set} request {count} different topologies; at most {limit.value} {limit.unit} are allowed"
).format


def error_text(error: Exception) -> str:
    """Return the message of an error, preceded by the error's type unless the error is a LimitError."""
    if isinstance(error, LimitError):
        return str(error)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
