"""Annotations that allow or forbid autoscalers to move a pod, for cluster-autoscaler and Karpenter together.

Muster records the value that it has set in another annotation (`muster.dev/safe-to-evict`). When the pod's queue
changes, Muster can therefore replace its own value.
"""

from collections.abc import Mapping

from muster.api import names

VALUES = ("true", "false", "on-completion")
"""Values of cluster-autoscaler's annotation. Karpenter has only the annotation `do-not-disrupt`."""
_HELD = ("false", "on-completion")


def annotations_for(value: str) -> dict[str, str | None]:
    """Return the annotations of a pod for this value of cluster-autoscaler's annotation.

    None in the result removes an annotation; an empty `value` removes all of the annotations.
    """
    held = "true" if value in _HELD else None
    return {names.PODS_SAFE_TO_EVICT: value or None, names.DO_NOT_DISRUPT: held, names.SAFE_TO_EVICT: value or None}


def recorded_value(annotations: Mapping[str, str]) -> str:
    """Return the value that Muster has set; if the pod's annotations contradict it, an invalid text with both."""
    value, held = annotations.get(names.PODS_SAFE_TO_EVICT, ""), annotations.get(names.DO_NOT_DISRUPT)
    return value if held == annotations_for(value)[names.DO_NOT_DISRUPT] else f"{value}, {names.DO_NOT_DISRUPT}={held}"
