"""Gangs that ask autoscalers for their nodes, as the API server shows them."""

from muster.api.kubernetes.core import PODS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client


def words_of(client: Client, namespace: str, name: str) -> str:
    """Why a gang waits, as its PodGroup says it."""
    groups = [group for group in client.list(POD_GROUPS, namespace) if group.metadata.name.startswith(f"{name}-")]
    return next((each.message for group in groups for each in group.status.conditions if each.status == "True"), "")


def pods_of(client: Client, namespace: str, name: str) -> dict[str, str]:
    """UID → node of a gang's pods that are not on their way out."""
    pods = (pod for pod in client.list(PODS, namespace) if pod.metadata.name.startswith(f"{name}-"))
    return {pod.metadata.uid: pod.spec.node_name for pod in pods if not pod.metadata.deletion_timestamp}
