"""Writer of pod conditions and ProvisioningRequests for autoscalers, and reader of the requests' results.

`planner.scaleup` makes the decisions. ProvisioningRequests are listed instead of watched, because most clusters have
none.
"""

from typing import Any

import msgspec
import structlog

from extender.planner.framework.decisions import AnnotateEviction, RequestNodes, SetCondition, WithdrawRequest
from extender.planner.framework.session import Session
from extender.planner.scaleup.requests import newest
from extender.writes import WriteContext, Writer
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes import autoscaling, core
from muster.api.muster import safetoevict
from muster.api.muster.native import reference
from muster.kube.errors import AlreadyExists, APIError, Conflict, NotFound

log = structlog.get_logger()
POLL_S = 2.0
"""Interval in seconds between lists of ProvisioningRequests while a gang waits for a request's result."""
CHECK_INTERVAL_S = 60.0
"""Seconds between lists of ProvisioningRequests at other times, to find those that no gang needs."""
LIST_TIMEOUT_S = 3.0
GATED = "Scheduling is blocked due to non-empty scheduling gates"
"""Message that the API server writes into the condition of a new pod with a gate."""
_WHOLE_PODS: Resource[dict[str, Any]] = Resource(
    core.PODS.group, core.PODS.version, core.PODS.plural, core.PODS.kind, dict[str, Any]
)
_TEMPLATES: Resource[dict[str, Any]] = Resource("", "v1", "podtemplates", "PodTemplate", dict[str, Any])
_NOT_OF_A_TEMPLATE = ("nodeName", "schedulingGates")


class Scaling(Writer):
    """Writer of ProvisioningRequests and of pods' conditions; `requests` has the newest request of each gang."""

    def __init__(self, context: WriteContext) -> None:
        super().__init__(context)
        self.requests: dict[str, autoscaling.ProvisioningRequest] = {}
        """Maps the UID of a gang to the gang's newest ProvisioningRequest."""
        self.served: bool | None = None
        """True if the API server serves the kind ProvisioningRequest; None before the first list."""
        self._wanted = False
        self._listed_at = -CHECK_INTERVAL_S

    def refresh(self, now: float) -> None:
        """List the ProvisioningRequests if a list is due at `now`, in seconds; on a failure, keep the old list."""
        pause_s = POLL_S if self._wanted or self.requests else CHECK_INTERVAL_S
        if 0 <= now - self._listed_at < pause_s:
            return
        self._listed_at = now
        try:
            found = self._client.list(
                autoscaling.PROVISIONING_REQUESTS, label_selector=f"{names.MANAGED_BY}=muster", timeout_s=LIST_TIMEOUT_S
            )
        except NotFound:
            self.requests, self.served = {}, False
        except APIError as error:
            log.info("ProvisioningRequests not listed", error=str(error))
        else:
            self.requests, self.served = newest(found), True

    def follow(self, session: Session) -> None:
        """Record if gangs of this cycle wait for results of ProvisioningRequests, which are then listed more often."""
        self._wanted = session.provisioning_wanted

    def report(self, decision: SetCondition) -> None:
        """Write a pod's condition, unless the pod has been bound or changed since the decision."""
        pod = decision.pod
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable" if decision.asks else "SchedulingGated",
            "message": f"{names.MESSAGE_PREFIX}{decision.message}" if decision.message else GATED,
        }
        meta = {"uid": pod.uid, "resourceVersion": pod.resource_version}
        body = {"metadata": meta, "status": {"conditions": [condition]}}
        try:
            new = self._client.strategic_patch(core.PODS, pod.name, body, pod.namespace, subresource="status")
        except (Conflict, NotFound) as error:
            log.debug("a pod has changed; its condition is computed again", pod=pod.name, error=str(error))
            return
        self._cluster.ask(lambda state: state.on_pod_written(new))

    def report_eviction(self, decision: AnnotateEviction) -> None:
        """Write a bound pod's annotations for autoscalers, and the annotation that marks Muster as their writer."""
        body = {"metadata": {"uid": decision.pod.uid, "annotations": safetoevict.annotations_for(decision.value)}}
        try:
            new = self._client.merge_patch(core.PODS, decision.pod.name, body, decision.pod.namespace)
        except (Conflict, NotFound) as error:
            log.debug("the pod is gone", pod=decision.pod.name, error=str(error))
            return
        self._cluster.ask(lambda state: state.on_pod_written(new))

    def request(self, wanted: RequestNodes) -> None:
        """Create a ProvisioningRequest, with PodTemplates derived from pods of the gang."""
        meta, owner = wanted.gang.group.metadata, msgspec.to_builtins(reference(wanted.gang.group))
        owned: dict[str, Any] = {
            "namespace": meta.namespace,
            "labels": {names.MANAGED_BY: "muster"},
            "ownerReferences": [owner],
        }
        pod_sets = []
        for pod_set, count, pod in wanted.pods:
            name = f"{wanted.name}-{pod_set}"
            whole = self._client.get(_WHOLE_PODS, pod.name, pod.namespace)
            spec = {key: value for key, value in whole["spec"].items() if key not in _NOT_OF_A_TEMPLATE}
            template = {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": {**owned, "name": name},
                "template": {"metadata": {"labels": whole["metadata"].get("labels", {})}, "spec": spec},
            }
            try:
                self._client.create(_TEMPLATES, template, meta.namespace)
            except AlreadyExists:
                log.debug("PodTemplate exists from an earlier attempt", name=name)
            pod_sets.append({"podTemplateRef": {"name": name}, "count": count})
        of_class = wanted.provisioning_class
        body = {
            "apiVersion": autoscaling.PROVISIONING_REQUESTS.api_version,
            "kind": autoscaling.PROVISIONING_REQUESTS.kind,
            "metadata": {**owned, "name": wanted.name, "annotations": {names.SCALE_UP_ATTEMPT: str(wanted.attempt)}},
            "spec": {"podSets": pod_sets, "provisioningClassName": of_class, "parameters": dict(wanted.parameters)},
        }
        self.requests[meta.uid] = self._client.create(autoscaling.PROVISIONING_REQUESTS, body, meta.namespace)
        log.info("asked for nodes", gang=wanted.gang.key, request=wanted.name)

    def withdraw(self, withdrawal: WithdrawRequest) -> None:
        """Delete a ProvisioningRequest and its PodTemplates."""
        meta = withdrawal.request.metadata
        self._delete(autoscaling.PROVISIONING_REQUESTS, meta.name, meta.namespace, meta.uid)
        for each in withdrawal.request.spec.pod_sets:
            self._delete(_TEMPLATES, each.pod_template_ref.name, meta.namespace)
        known = self.requests.get(withdrawal.gang.uid)
        if known is not None and known.metadata.uid == meta.uid:
            del self.requests[withdrawal.gang.uid]
        log.info("request withdrawn", gang=withdrawal.gang.key, request=meta.name, why=withdrawal.why)

    def _delete(self, resource: Resource[Any], name: str, namespace: str, uid: str | None = None) -> None:
        try:
            self._client.delete(resource, name, namespace, uid=uid)
        except (NotFound, Conflict):
            log.debug("the object is already gone", kind=resource.kind, name=name)
