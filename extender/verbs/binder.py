"""One binding, idempotent: success is only what the API server has confirmed."""

from collections.abc import Mapping

from muster.api.core import PODS
from muster.kube.client import Client
from muster.kube.errors import Conflict, Unreachable


class Binder:
    """Posts bindings with the pod's UID as precondition."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Bind, or find that it is bound already to this node. Raises APIError otherwise.

        A conflict or a lost answer is decided by reading the pod: kube-scheduler retries a bind whose answer it did not
        get, and "already assigned" may be our own work.
        """
        try:
            self._client.bind(namespace, name, uid, node, annotations)
        except (Conflict, Unreachable):
            pod = self._client.get(PODS, name, namespace)
            if pod.metadata.uid == uid and pod.spec.node_name == node:
                return
            raise
