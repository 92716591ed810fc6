"""Annotations of a pod that allow autoscalers to move it, or not: cluster-autoscaler's and Karpenter's, always both.

Muster notes on the pod that the words are its own (`muster.dev/safe-to-evict`), so that they can follow the queue.
"""

from collections.abc import Mapping

from muster.api import names

VALUES = ("true", "false", "on-completion")
"""cluster-autoscaler's values; Karpenter knows no more than `do not`, which ends with the pod."""
_HELD = ("false", "on-completion")


def annotations_for(value: str) -> dict[str, str | None]:
    """Return the annotations of a pod to which Muster says this; None takes one away. Empty says nothing."""
    held = "true" if value in _HELD else None
    return {names.PODS_SAFE_TO_EVICT: value or None, names.DO_NOT_DISRUPT: held, names.SAFE_TO_EVICT: value or None}


def said_by(annotations: Mapping[str, str]) -> str:
    """Return what a pod says: a value of Muster's, or something that is none if its annotations do not agree."""
    value, held = annotations.get(names.PODS_SAFE_TO_EVICT, ""), annotations.get(names.DO_NOT_DISRUPT)
    return value if held == annotations_for(value)[names.DO_NOT_DISRUPT] else f"{value}, {names.DO_NOT_DISRUPT}={held}"
