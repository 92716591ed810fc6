"""Weights of a queue by resource, in an annotation beside the one of its spec, as KAI-Scheduler has them. Pure."""

import re
from collections.abc import Mapping

from muster.api import names

ALL = "*"
"""Stands for every resource that is not named, as far as some queue deserves an amount of it."""
LARGEST = 65_535.0
_NUMBER = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,6})?")


def read_weights(annotations: Mapping[str, str]) -> dict[str, float]:
    """Return resource → weight, 0 or more; empty without the annotation. ValueError says what is wrong with it.

    With 0 the queue gets nothing of what is left when every queue has what it deserves.
    """
    weights: dict[str, float] = {}
    text = annotations.get(names.QUEUE_WEIGHTS, "")
    for part in filter(None, (each.strip() for each in text.split(","))):
        resource, _, number = (each.strip() for each in part.partition("="))
        if not resource or not _NUMBER.fullmatch(number) or float(number) > LARGEST:
            example = "write it like nvidia.com/gpu=0,cpu=2.5, or *=0 for all resources that have quotas"
            raise ValueError(f"{part!r} is no resource with a weight from 0 to {LARGEST:.0f}; {example}")
        if resource in weights:
            raise ValueError(f"{resource!r} has two weights; name each resource once")
        weights[resource] = float(number)
    return weights
