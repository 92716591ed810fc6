"""MPI: a launcher that reaches its nodes by ssh, the key for it, and the list of nodes.

A TrainJob has pod sets `launcher` and `node`; the hostfile is a ConfigMap and the key a Secret of its own. Where an
owner makes its pods itself, all pods are of one shape: rank 0 launches and computes, and the controller makes the
Secret when it sees the first pod. A short hostfile travels as an annotation of each pod; a long one, which would be
stored as many times as there are pods, is a ConfigMap that the controller makes together with the Secret.
"""

from collections.abc import Iterable
from functools import partial

from muster.api.fields import FieldError, Findings, InvalidFieldError
from muster.runtime.component import Component, KeyKind
from muster.runtime.info import Container, Info, PodSet
from muster.runtime.plan import Mount, Plan, Volume
from muster.runtime.plugins.mpi_kinds import HOSTFILE, OPEN_MPI
from muster.runtime.plugins.mpi_objects import (
    HOSTFILE_ANNOTATION,
    HOSTFILE_KEY,
    HOSTFILE_VOLUME,
    NAME,
    PRIVATE_KEY,
    PUBLIC_KEY,
    SSH_VOLUME,
    hostfile_map,
    hostfile_text,
    in_a_map,
    secret_name,
    shared_map,
    shared_name,
    ssh_secret,
)
from muster.runtime.plugins.mpi_settings import (
    checked,
    cluster_domain,
    implementation,
    launcher_computes,
    mount_path,
    slots,
)
from muster.runtime.plugins.mpi_wait import wait_s, waiter
from muster.runtime.plugins.reserved import Variables, reserved, yielding
from muster.runtime.settings import SSH_KEY, SSH_SECRET
from muster.runtime.values import Late
from muster.workloads.adapter import Owner

SSHD = ("/usr/sbin/sshd", "-De")
SSH_PORT = 22
_ROOT = "/root"
_FOLDER = ".ssh"
"""In the volume. Everybody may write to the volume's root, which sshd does not accept of a folder with keys."""


class MPI:
    """Gives launcher and nodes what mpirun and ssh need."""

    name = NAME
    framework = "mpi"

    def validate(self, info: Info) -> Findings:
        """Reserved variables, and settings that mean something."""
        if info.framework != self.framework:
            return Findings()
        findings = Findings(_settings(info))
        if not findings.errors:
            findings.add(reserved(info, implementation(info).reserved))
        findings.errors += _shape_errors(info)
        return findings

    def enforce_ml_policy(self, info: Info) -> None:
        """Counts, slots, volumes, mounts and variables."""
        for error in _settings(info):
            raise InvalidFieldError(error)
        launcher, nodes = _parts(info)
        if info.train_job and launcher_computes(info):
            # The launcher is one of the nodes that the user counts.
            for pod_set in nodes:
                pod_set.count = max(pod_set.count - 1, 0)
        for pod_set in nodes if launcher in nodes else [launcher, *nodes]:
            if pod_set in nodes or launcher_computes(info):
                pod_set.slots = slots(info, nodes[0])
            self._keys(info, pod_set)
            if pod_set is not launcher:
                _serve(pod_set)
            if implementation(info).calls_back:
                pod_set.searches.append(Late(lambda: search_domain(info, launcher)))
        self._launch(info, launcher, slots(info, nodes[0]))

    def build(self, plan: Plan) -> Iterable[Component]:
        """The key of a TrainJob, made once and never changed under running pods, and its hostfile."""
        if plan.framework != self.framework or not plan.target:
            return
        if SSH_SECRET not in plan.settings:
            yield ssh_secret(plan.owner, _key_kind(plan))
        yield hostfile_map(plan)

    def watched(self) -> Iterable[str]:
        """What `build` makes."""
        return ["configmaps", "secrets"]

    def _keys(self, info: Info, pod_set: PodSet) -> None:
        secret = info.setting(SSH_SECRET)
        path = mount_path(info)
        source = {
            "secret": {
                "secretName": secret.text if secret else secret_name(info.owner.name),
                "defaultMode": 0o400,
                "items": [
                    {"key": PRIVATE_KEY, "path": f"{_FOLDER}/id_rsa", "mode": _key_mode(pod_set, path)},
                    {"key": PUBLIC_KEY, "path": f"{_FOLDER}/id_rsa.pub", "mode": 0o644},
                    {"key": PUBLIC_KEY, "path": f"{_FOLDER}/authorized_keys", "mode": 0o644},
                ],
            }
        }
        pod_set.volumes.append(Volume(SSH_VOLUME, source, self.name, f"ssh between the pods of {info.workload}"))
        if pod_set.target:
            pod_set.target.mounts.append(Mount(SSH_VOLUME, path, _FOLDER))

    def _launch(self, info: Info, launcher: PodSet, number: int) -> None:
        """Hostfile and variables of the launcher."""
        source: dict[str, object]
        item = {"key": HOSTFILE_KEY, "path": HOSTFILE_KEY, "mode": 0o444}
        if info.train_job:
            source = {"configMap": {"name": f"{info.owner.name}-{HOSTFILE_VOLUME}", "items": [item]}}
        else:
            hosts = hostfile_text(info, launcher, number)
            if in_a_map(hosts):
                source = {"configMap": {"name": shared_name(info.owner.name, hosts), "items": [item]}}
            else:
                launcher.annotations[HOSTFILE_ANNOTATION] = hosts
                reference = {"fieldPath": f"metadata.annotations['{HOSTFILE_ANNOTATION}']"}
                source = {"downwardAPI": {"items": [{"path": HOSTFILE_KEY, "fieldRef": reference, "mode": 0o444}]}}
        launcher.volumes.append(Volume(HOSTFILE_VOLUME, source, self.name, f"pods of {info.workload}"))
        if launcher.target:
            launcher.target.mounts.append(Mount(HOSTFILE_VOLUME, HOSTFILE.rpartition("/")[0]))
            launcher.target.set(self.name, yielding(info, _environment(info, number)))
        if launcher.role == "launcher" or launcher.own_rank == 0:
            launcher.inits.append(partial(waiter, info, launcher, self.name))


def shared_hostfile(info: Info, owner: Owner) -> Component | None:
    """The ConfigMap that the pods of this workload mount; None where they carry the hostfile themselves."""
    launcher, nodes = _parts(info)
    hosts = hostfile_text(info, launcher, slots(info, nodes[0]))
    return shared_map(owner, hosts) if in_a_map(hosts) else None


def search_domain(info: Info, launcher: PodSet) -> str:
    """Where the launcher's host name means something."""
    return f"{launcher.subdomain}.{info.owner.namespace}.svc.{cluster_domain(info)}"


def _environment(info: Info, number: int) -> Variables:
    kind = implementation(info)
    why = f"what {kind.name} reads"
    values = dict(kind.environment(number))
    if mount_path(info).startswith(_ROOT) and kind is OPEN_MPI:
        values |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {name: (value, why) for name, value in values.items()}


def _parts(info: Info) -> tuple[PodSet, list[PodSet]]:
    """The launcher, and the pod sets that compute; InvalidFieldError where a part is missing."""
    nodes = info.trainers
    launcher = next((pod_set for pod_set in info.pod_sets if pod_set.role == "launcher"), None)
    if launcher is None and not info.train_job and nodes:
        launcher = nodes[0]
    if launcher is None or not nodes:
        raise InvalidFieldError(_missing_part(info))
    return launcher, nodes


def _missing_part(info: Info) -> FieldError:
    message = "must refer to a runtime with replicated jobs launcher and node, because its policy is mpi"
    return FieldError("spec.runtimeRef", message, info.runtime_name)


def _settings(info: Info) -> list[FieldError]:
    """Everything that is wrong with the settings."""
    try:
        wait_s(info)
    except InvalidFieldError as error:
        return [*checked(info), error.error]
    return checked(info)


def _shape_errors(info: Info) -> list[FieldError]:
    try:
        _parts(info)
    except InvalidFieldError as error:
        return [error.error]
    return []


def _serve(pod_set: PodSet) -> None:
    """A node runs sshd unless it has a command of its own, and is ready as soon as ssh gets through."""
    target = pod_set.target
    if target is None:
        return
    port = _declared_port(target)
    if not target.given.command and not target.given.args:
        target.command = SSHD
        port = port or SSH_PORT
    if port:
        target.readiness = {"tcpSocket": {"port": port}, "periodSeconds": 2}


def _declared_port(container: Container) -> int | None:
    ports = container.given.ports
    found = [port.container_port for port in ports if port.name in {"ssh", "sshd"}]
    found += [port.container_port for port in ports if port.container_port in {SSH_PORT, 2222}]
    return found[0] if found else None


def _key_mode(pod_set: PodSet, path: str) -> int:
    """Ssh refuses a key that others can read if it belongs to the user; the files of a Secret belong to root.

    So root needs 0600. Anybody else must be able to read it through the group (fsGroup), or as one of all.
    """
    if path == _ROOT or path.startswith(f"{_ROOT}/"):
        return 0o600
    return 0o640 if pod_set.fs_group else 0o644


def _key_kind(plan: Plan) -> KeyKind:
    setting = plan.settings.get(SSH_KEY)
    return "ecdsa" if setting and setting.text == "ecdsa" else "ed25519"
