"""Follows a Lease that somebody else holds: are we the part that belongs to the leader?

The extender acts only while the kube-scheduler in its own pod leads. That scheduler's identity begins with the pod's
name.
"""

import threading
import time
from collections.abc import Callable

from muster.api.kubernetes.core import LEASES, Lease
from muster.kube.client import Client
from muster.kube.reflector import Reflector

# The leader renews every two seconds: after an outage we should see it about as soon as it is back.
_MAX_DELAY_S = 2.0


class LeaseFollower:
    """`active` while the lease's holder begins with `identity_prefix` and renews in time, as seen on our own clock.

    A lease that was there when we started counts from its next renewal on: nobody can know how old the last one is.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity_prefix: str,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = identity_prefix
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._active_until = float("-inf")
        self._reflector = Reflector(
            client,
            LEASES,
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            longest_delay_s=_MAX_DELAY_S,
        )
        self._reflector.add_handler(self.observe)

    @property
    def active(self) -> bool:
        """Whether our leader leads now."""
        with self._lock:
            return self._monotonic_s() < self._active_until

    def start(self) -> None:
        """Starts to follow; inactive until the leader has renewed once."""
        self._reflector.start()

    def stop(self) -> None:
        """Stops following; inactive from now on."""
        self._reflector.stop()
        with self._lock:
            self._active_until = float("-inf")

    def observe(self, old: Lease | None, new: Lease | None) -> None:
        """Takes in one change of the lease."""
        with self._lock:
            if new is None or not (new.spec.holder_identity or "").startswith(self._prefix):
                self._active_until = float("-inf")
            elif old is None and not self._reflector.synced:
                return
            elif old is None or old.spec.renew_time != new.spec.renew_time:
                self._active_until = self._monotonic_s() + (new.spec.lease_duration_seconds or 0)
