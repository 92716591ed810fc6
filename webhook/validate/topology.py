"""Network topology: the highest tier is given by number or by name, not both."""

from collections.abc import Iterator

from muster.api.fields import FieldError
from muster.api.scheduling import NetworkTopology


def check_topology(topology: NetworkTopology | None, path: str) -> Iterator[FieldError]:
    """An error where both are given; an empty name is none."""
    if topology and topology.highest_tier_allowed is not None and topology.highest_tier_name:
        message = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
        yield FieldError(f"{path}.highestTierName", message, topology.highest_tier_name)
