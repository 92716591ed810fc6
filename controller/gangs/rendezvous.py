"""Objects by which the pods of a framework find each other: a headless Service, and ssh keys and a hostfile for MPI.

The webhook adds references to Services, Secrets and ConfigMaps to the pods, which then wait until these objects exist.
The controller creates the objects when the first pod of a workload exists.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from certs.ssh import complete
from controller.caches import SharedCaches
from controller.kit import KeyController, Kit
from controller.live import controller_of, find_or_make, get_or_none
from controller.worker import Retry
from muster.api import names
from muster.api.base import Resource
from muster.api.fields import InvalidFieldError
from muster.api.kubernetes.core import CONFIG_MAPS, PODS, SECRETS, SERVICES, Pod
from muster.api.kubernetes.meta import Object
from muster.kube.claims import read_claim
from muster.kube.errors import BadRequest, Forbidden, Invalid
from muster.runtime import registry
from muster.runtime.framework import Framework
from muster.runtime.plugins.mpi import shared_hostfile
from muster.runtime.plugins.mpi_objects import HOSTFILE_VOLUME, SSH_VOLUME, secret_name, ssh_secret
from muster.runtime.settings import SSH_KEY, annotation
from muster.runtime.workload import describe_pod
from muster.workloads.adapter import Owner, OwnerError
from muster.workloads.kind import PodContext
from muster.workloads.table import CONTROLLERS, KINDS, adapter_for, gang_rules, row_of

_BY_LABEL = {kind.ranks.name_label: kind.resource for kind in KINDS if kind.ranks and kind.ranks.name_label}
_MAX_KNOWN = 10_000

_Claim = tuple[str, ...]
"""The owner that a pod names, and the name of the pod's hostfile, which changes whenever the owner is scaled."""


class Rendezvous(KeyController):
    """The worker that creates Services, Secrets and ConfigMaps for pods.

    One pass for any pod of an owner is sufficient.
    """

    def __init__(self, kit: Kit, caches: SharedCaches, framework: Framework | None = None) -> None:
        super().__init__(kit, "rendezvous")
        self._framework = framework or registry.framework()
        self._pods = caches.pods.store
        self._done: dict[_Claim, None] = {}
        self.handlers.append((caches.pods, self._pod_seen))

    def _pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Queue a new pod whose objects may be missing."""
        if old is None and new and needs_something(new) and _claim(new) not in self._done:
            self.worker.queue.add(new.metadata.key)

    def process(self, key: str) -> None:
        """Run one pass over one pod."""
        pod = self._pods.get(key)
        if pod is None or _claim(pod) in self._done:
            return
        if needs_service(pod):
            self._serve(pod)
        if mounted_keys(pod):
            self._make_keys(pod)
        if mounted_hostfile(pod):
            whole = get_or_none(self._client, PODS, pod.metadata.name, pod.metadata.namespace)
            if whole is None:
                return  # deleted; any other pod of the workload will do
            self._make_hostfile(whole)
        if len(self._done) >= _MAX_KNOWN:
            self._done.clear()
        self._done[_claim(pod)] = None

    def _serve(self, pod: Pod) -> None:
        """Create the Service of a workload, unless another controller creates it.

        JobSet's controller, for example, creates a Service for the Jobs of a JobSet.
        """
        rules, workload = gang_rules(pod.metadata.controller), self._controller(pod)
        if rules is None or rules.service is None or workload is None:
            return
        kind = row_of(workload.metadata.controller)
        if kind and kind.world:
            return
        try:
            self._make(SERVICES, workload, rules.service(workload))
        except Invalid as error:
            self._complain(workload, f"Service {workload.metadata.name} is refused: {error}")

    def _make_keys(self, pod: Pod) -> None:
        """Create the Secret that the pod mounts, unless the user has named a Secret of their own."""
        workload = self._workload(pod)
        if workload is None or mounted_keys(pod) != secret_name(workload.metadata.name):
            return
        meta, owner = workload.metadata, _owner(workload)
        wanted = pod.metadata.annotations.get(annotation(SSH_KEY)) or meta.annotations.get(annotation(SSH_KEY))
        self._make(SECRETS, workload, complete(ssh_secret(owner, "ecdsa" if wanted == "ecdsa" else "ed25519")))

    def _make_hostfile(self, pod: Pod) -> None:
        """Create the ConfigMap with the hostfile that the pod mounts, unless the user has named their own ConfigMap."""
        controller, workload = self._controller(pod), self._workload(pod)
        if controller is None or workload is None or names.FRAMEWORK not in pod.metadata.labels:
            return
        if not mounted_hostfile(pod).startswith(f"{workload.metadata.name}-{HOSTFILE_VOLUME}-"):
            return
        try:
            adapter = adapter_for(controller, PodContext(pod.metadata, pod.spec))
            claims = partial(read_claim, self._client, pod.metadata.namespace)
            info = self._framework.prepared(describe_pod(adapter, pod.spec, pod.metadata, claims))
            made = shared_hostfile(info, _owner(workload))
        except (InvalidFieldError, OwnerError) as error:
            self._mismatch(pod, workload, str(error))
            return
        if made is None or made.name != mounted_hostfile(pod):
            self._mismatch(pod, workload, f"{workload.kind} {workload.metadata.name} has an outdated list of hosts")
            return
        self._make(CONFIG_MAPS, workload, made.manifest)

    def _mismatch(self, pod: Pod, workload: Object, why: str) -> None:
        message = f"ConfigMap {mounted_hostfile(pod)} of pod {pod.metadata.name} cannot be made: {why}; delete the pod"
        self._recorder.event(workload, "Warning", "ConfigMapError", message)

    def _make(self, resource: Resource[Any], workload: Object, manifest: Mapping[str, Any]) -> None:
        """Create an object; wait while an earlier workload's object of the same name exists.

        An object that a user has created is kept.
        """
        try:
            found, new = find_or_make(self._client, resource, manifest)
        except (BadRequest, Forbidden) as error:
            why = f"{resource.kind} {manifest['metadata']['name']} is refused: {error.message}"
            self._recorder.event(workload, "Warning", f"{resource.kind}Error", f"{why}; the pods wait for it")
            raise Retry(why) from error
        owner, what = found.metadata.controller, f"{resource.kind} {found.metadata.name}"
        if new or (owner and owner.uid == workload.metadata.uid):
            return
        if owner:
            why = f"{what} belongs to {owner.kind} {owner.name}"
            self._recorder.event(workload, "Warning", f"{resource.kind}Error", f"{why}; waiting until it is gone")
            raise Retry(why)
        if resource is SERVICES:
            self._complain(workload, f"{what} exists already and does not belong to this {workload.kind}")

    def _complain(self, workload: Object, why: str) -> None:
        message = f"{why}; the pods cannot find each other by name. Give the {workload.kind} another name"
        self._recorder.event(workload, "Warning", "ServiceError", message)

    def _workload(self, pod: Pod) -> Object | None:
        """Return the topmost owner in the pod's metadata; the owner's name determines the Secret's name."""
        meta = pod.metadata
        for label, resource in _BY_LABEL.items():
            if label in meta.labels:
                workload: Object | None = get_or_none(self._client, resource, meta.labels[label], meta.namespace)
                return workload
        return self._controller(pod)

    def _controller(self, pod: Pod) -> Object | None:
        """Return the controller of the pod; None if it was deleted, or if its pods have no ranks."""
        ref = pod.metadata.controller
        return controller_of(self._client, pod.metadata, CONTROLLERS.get((ref.api_version, ref.kind)) if ref else None)


def needs_something(pod: Pod) -> bool:
    """Return True if the pod refers to an object that this worker creates."""
    if names.FRAMEWORK not in pod.metadata.labels or pod.finished or pod.metadata.deletion_timestamp:
        return False
    return needs_service(pod) or bool(mounted_keys(pod)) or bool(mounted_hostfile(pod))


def needs_service(pod: Pod) -> bool:
    """Return True if the pod needs a Service with the name of its workload, which this worker creates."""
    ref = pod.metadata.controller
    rules = gang_rules(ref)
    return rules is not None and rules.service is not None and ref is not None and pod.spec.subdomain == ref.name


def mounted_keys(pod: Pod) -> str:
    """Return the name of the Secret with ssh keys that the pod mounts; "" if it mounts none."""
    return str((_volume(pod, SSH_VOLUME).get("secret") or {}).get("secretName") or "")


def mounted_hostfile(pod: Pod) -> str:
    """Return the name of the ConfigMap with the hostfile that the pod mounts; "" if the pod mounts no hostfile."""
    return str((_volume(pod, HOSTFILE_VOLUME).get("configMap") or {}).get("name") or "")


def _volume(pod: Pod, name: str) -> Mapping[str, Any]:
    return next((volume for volume in pod.spec.volumes if volume.get("name") == name), {})


def _owner(workload: Object) -> Owner:
    meta = workload.metadata
    return Owner(workload.api_version, workload.kind, meta.name, meta.namespace, meta.uid)


def _claim(pod: Pod) -> _Claim:
    """Return the full owner reference of a pod, with its namespace and hostfile.

    The owner's UID is not enough, because a pod may combine it with another namespace or name.
    """
    meta, ref = pod.metadata, pod.metadata.controller
    whose = (ref.api_version, ref.kind, ref.name, ref.uid) if ref else (meta.uid,)
    return (meta.namespace, *whose, mounted_hostfile(pod))
