"""Amounts of resources as Kubernetes' objects have them."""

from msgspec import field

from muster.api.base import Wire

Quantities = dict[str, str | int | float]
"""Resource name → quantity as written, e.g. {"cpu": "500m", "nvidia.com/gpu": 8}."""


class ResourceRequirements(Wire):
    """requests and limits of a container or pod."""

    requests: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)
