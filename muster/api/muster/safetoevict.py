"""Annotations that allow or forbid autoscalers to move a pod, for cluster-autoscaler and Karpenter together.

Muster marks its values on the pod (`muster.dev/safe-to-evict`), so that they can follow changes of the queue.
"""

from collections.abc import Mapping

from muster.api import names

VALUES = ("true", "false", "on-completion")
"""cluster-autoscaler's values; Karpenter only knows `do-not-disrupt`, which ends with the pod."""
_HELD = ("false", "on-completion")


def annotations_for(value: str) -> dict[str, str | None]:
    """Return the annotations of a pod for this value; None removes an annotation. Empty means no value."""
    held = "true" if value in _HELD else None
    return {names.PODS_SAFE_TO_EVICT: value or None, names.DO_NOT_DISRUPT: held, names.SAFE_TO_EVICT: value or None}


def recorded_value(annotations: Mapping[str, str]) -> str:
    """Return a pod's value; not one of Muster's values if the pod's annotations differ from each other."""
    value, held = annotations.get(names.PODS_SAFE_TO_EVICT, ""), annotations.get(names.DO_NOT_DISRUPT)
    return value if held == annotations_for(value)[names.DO_NOT_DISRUPT] else f"{value}, {names.DO_NOT_DISRUPT}={held}"
