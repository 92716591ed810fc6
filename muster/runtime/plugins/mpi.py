"""Plugin for MPI: a launcher that connects to its nodes by ssh, the ssh key, and the list of nodes.

A TrainJob has the pod sets `launcher` and `node`; its hostfile is in a ConfigMap, and its ssh key is in a Secret. If
the owner creates its pods itself, all pods have one shape, and rank 0 is both launcher and node. The controller creates
the Secret together with the first pod. A short hostfile is in an annotation of each pod. A long hostfile is in a
ConfigMap, which the controller creates together with the Secret.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from muster.api.fields import FieldError, Findings, InvalidFieldError
from muster.runtime.info import Info, Late, PodSet, Variables
from muster.runtime.plan import Component, Mount, Plan, Volume
from muster.runtime.plugins import mpi_objects, mpi_settings
from muster.runtime.plugins.shared import errors_of, reserved, yielding
from muster.runtime.settings import SSH_SECRET
from muster.runtime.train_job import mounted_paths
from muster.volcano.manifests import key_mode, of_root
from muster.workloads.adapter import Owner

SSHD = ("/usr/sbin/sshd", "-De")
SSH_PORT = 22
_FOLDER = ".ssh"
"""Directory of the ssh keys in their volume. sshd does not accept keys in the root directory of a volume, because all
users may write there."""


class MPIRuntime:
    """Plugin that adds ssh keys, a hostfile, and environment variables for mpirun and ssh to launcher and nodes."""

    name = mpi_objects.NAME
    framework = "mpi"

    def validate(self, info: Info) -> Findings:
        """Reject reserved environment variables, settings out of range, and runtimes without launcher or nodes."""
        if info.framework != self.framework:
            return Findings()
        findings = Findings(_setting_errors(info))
        if not findings.errors:
            findings.add(reserved(info, mpi_settings.implementation(info.settings).reserved))
        findings.errors += errors_of(info, _parts)
        if not findings.errors and info.train_job:
            findings.errors += _taken(info)
        return findings

    def enforce_ml_policy(self, info: Info) -> None:
        """Set the counts, slots, volumes, mounts and environment variables of the pod sets."""
        for error in _setting_errors(info):
            raise InvalidFieldError(error)
        launcher, nodes = _parts(info)
        if info.train_job and mpi_settings.launcher_computes(info):
            # the launcher is one of the nodes that the user counts
            for pod_set in nodes:
                pod_set.count = max(pod_set.count - 1, 0)
        domain = f"{info.owner.namespace}.svc.{mpi_settings.cluster_domain(info.settings)}"
        for pod_set in nodes if launcher in nodes else [launcher, *nodes]:
            if pod_set in nodes or mpi_settings.launcher_computes(info):
                pod_set.slots = mpi_settings.slots(info, nodes[0])
            self._mount_keys(info, pod_set)
            if pod_set is not launcher:
                _serve(pod_set)
            if mpi_settings.implementation(info.settings).calls_back:
                pod_set.searches.append(Late(lambda: f"{launcher.subdomain}.{domain}"))
        self._launch(info, launcher, mpi_settings.slots(info, nodes[0]))

    def build(self, plan: Plan) -> Iterable[Component]:
        """Yield the ConfigMap with a TrainJob's hostfile and, unless the user names a Secret, the ssh keys' Secret.

        The Secret is created only once, so the ssh keys never change while pods run.
        """
        if plan.framework != self.framework or not plan.target:
            return
        if SSH_SECRET not in plan.settings:
            yield mpi_objects.ssh_secret(plan.owner, mpi_settings.key_kind(plan.settings))
        yield mpi_objects.hostfile_map(plan)

    def watched(self) -> Iterable[str]:
        """Return the kinds of the objects that `build` returns."""
        return ["configmaps", "secrets"]

    def _mount_keys(self, info: Info, pod_set: PodSet) -> None:
        secret = info.setting(SSH_SECRET)
        path = mpi_settings.mount_path(info.settings)
        source = {
            "secret": {
                "secretName": secret.text if secret else mpi_objects.secret_name(info.owner.name),
                "defaultMode": 0o400,
                "items": [
                    {
                        "key": mpi_objects.PRIVATE_KEY,
                        "path": f"{_FOLDER}/id_rsa",
                        "mode": key_mode(pod_set.template, path),
                    },
                    {"key": mpi_objects.PUBLIC_KEY, "path": f"{_FOLDER}/id_rsa.pub", "mode": 0o644},
                    {"key": mpi_objects.PUBLIC_KEY, "path": f"{_FOLDER}/authorized_keys", "mode": 0o644},
                ],
            }
        }
        pod_set.volumes.append(
            Volume(mpi_objects.SSH_VOLUME, source, self.name, f"ssh between the pods of {info.workload}")
        )
        if pod_set.target:
            pod_set.target.mounts.append(Mount(mpi_objects.SSH_VOLUME, path, _FOLDER))

    def _launch(self, info: Info, launcher: PodSet, number: int) -> None:
        """Add the hostfile, the environment variables and the wait for hosts to the launcher."""
        source: dict[str, object]
        item = {"key": mpi_objects.HOSTFILE_KEY, "path": mpi_objects.HOSTFILE_KEY, "mode": 0o444}
        if info.train_job:
            source = {"configMap": {"name": f"{info.owner.name}-{mpi_objects.HOSTFILE_VOLUME}", "items": [item]}}
        else:
            hosts = mpi_objects.hostfile_text(info, launcher, number)
            if mpi_objects.in_a_map(hosts):
                source = {"configMap": {"name": mpi_objects.shared_name(info.owner.name, hosts), "items": [item]}}
            else:
                launcher.annotations[mpi_objects.HOSTFILE_ANNOTATION] = hosts
                reference = {"fieldPath": f"metadata.annotations['{mpi_objects.HOSTFILE_ANNOTATION}']"}
                source = {
                    "downwardAPI": {"items": [{"path": mpi_objects.HOSTFILE_KEY, "fieldRef": reference, "mode": 0o444}]}
                }
        launcher.volumes.append(Volume(mpi_objects.HOSTFILE_VOLUME, source, self.name, f"pods of {info.workload}"))
        if launcher.target:
            launcher.target.mounts.append(Mount(mpi_objects.HOSTFILE_VOLUME, mpi_settings.HOSTFILE.rpartition("/")[0]))
            launcher.target.set(self.name, yielding(info, _environment(info, launcher, number)))
        if launcher.role == "launcher" or launcher.own_rank == 0:
            launcher.inits.append(partial(mpi_objects.waiter, info, launcher, self.name))


def shared_hostfile(info: Info, owner: Owner) -> Component | None:
    """Return the ConfigMap with the hostfile of this workload; None if the pods' annotations contain the hostfile."""
    launcher, nodes = _parts(info)
    hosts = mpi_objects.hostfile_text(info, launcher, mpi_settings.slots(info, nodes[0]))
    return (
        mpi_objects.config_map(owner, mpi_objects.shared_name(owner.name, hosts), hosts, once=True)
        if mpi_objects.in_a_map(hosts)
        else None
    )


def _environment(info: Info, launcher: PodSet, number: int) -> Variables:
    kind = mpi_settings.implementation(info.settings)
    values = dict(kind.environment(number))
    if kind is mpi_settings.OPEN_MPI and of_root(launcher.template, mpi_settings.mount_path(info.settings)):
        values |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {name: (value, f"what {kind.name} reads") for name, value in values.items()}


def _taken(info: Info) -> Iterator[FieldError]:
    """Yield an error for each volume or mount of a runtime that conflicts with Muster's own volumes and mounts."""
    launcher, nodes = _parts(info)
    keys = (mpi_objects.SSH_VOLUME, mpi_settings.mount_path(info.settings))
    hosts = (mpi_objects.HOSTFILE_VOLUME, mpi_settings.HOSTFILE.rpartition("/")[0])
    for pod_set in [launcher, *(each for each in nodes if each is not launcher)]:
        volumes, paths = {each.get("name") for each in pod_set.spec.volumes}, mounted_paths(info, pod_set)
        for volume, path in (keys, hosts) if pod_set is launcher else (keys,):
            wrong = f"no volume {volume!r}" if volume in volumes else f"nothing mounted at {path}"
            if volume in volumes or path.rstrip("/") in paths:
                message = f"must refer to a runtime whose job {pod_set.name} has {wrong}: Muster adds that for MPI"
                yield FieldError("spec.runtimeRef", message, info.runtime_name)


def _parts(info: Info) -> tuple[PodSet, list[PodSet]]:
    """Return the launcher's pod set, and the pod sets that compute; raises InvalidFieldError for a missing one."""
    nodes = info.trainers
    launcher = next((pod_set for pod_set in info.pod_sets if pod_set.role == "launcher"), None)
    if launcher is None and not info.train_job and nodes:
        launcher = nodes[0]
    if launcher is None or not nodes:
        message = "must refer to a runtime with replicated jobs launcher and node, because its policy is mpi"
        raise InvalidFieldError(FieldError("spec.runtimeRef", message, info.runtime_name))
    return launcher, nodes


def _setting_errors(info: Info) -> list[FieldError]:
    of_settings = (mpi_settings.implementation, mpi_settings.mount_path, mpi_settings.key_kind, mpi_settings.wait_s)
    checks = [lambda info, check=check: check(info.settings) for check in of_settings]
    return errors_of(
        info,
        *checks,
        mpi_settings.launcher_computes,
        *(partial(mpi_settings.slots, nodes=each) for each in info.trainers[:1]),
    )


def _serve(pod_set: PodSet) -> None:
    """Set sshd as the command of the container `node` if it has none.

    The pod is ready once it accepts ssh connections.
    """
    target = pod_set.target
    if target is None:
        return
    ports = target.given.ports
    found = [port.container_port for port in ports if port.name in {"ssh", "sshd"}]
    found += [port.container_port for port in ports if port.container_port in {SSH_PORT, 2222}]
    port = found[0] if found else None
    if not target.given.command and not target.given.args:
        target.command = SSHD
        port = port or SSH_PORT
    if port:
        target.readiness = {"tcpSocket": {"port": port}, "periodSeconds": 2}
