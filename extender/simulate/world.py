"""The planner's state in simulated time, and its objects."""

from collections.abc import Mapping
from typing import Any

from extender.explain.clusterdump import READ
from extender.planner.scaleup.requests import newest
from extender.planner.state.feed import FEED
from extender.planner.state.state import PlannerState
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS

_FED = {fed.resource.full_name: fed for fed in FEED}


class RecordedState:
    """The planner's state and its objects by kind and key."""

    def __init__(self, state: PlannerState) -> None:
        self.state = state
        self.objects: dict[str, dict[str, Any]] = {resource.full_name: {} for resource in READ}

    def apply(self, kind: str, item: Any) -> None:
        """Pass an object to the state, as a watch would."""
        known = self.objects[kind].get(item.metadata.key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            self.forget(kind, item.metadata.key)
            known = None
        self.objects[kind][item.metadata.key] = item
        if kind in _FED:
            _FED[kind].apply(self.state, known, item)

    def forget(self, kind: str, key: str) -> None:
        """Remove an object from the state, if it is known."""
        known = self.objects[kind].pop(key, None)
        if known is not None and kind in _FED:
            _FED[kind].apply(self.state, known, None)

    def requests(self) -> Mapping[str, Any]:
        """Return the newest ProvisioningRequest of each gang, by its UID."""
        return newest(self.objects[PROVISIONING_REQUESTS.full_name].values())
