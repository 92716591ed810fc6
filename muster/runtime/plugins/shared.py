"""Functions that several framework plugins share: reserved environment variables, checks of settings, and ranks."""

from collections.abc import Callable, Sequence
from typing import Any

from muster.api.fields import FieldError, Findings, InvalidFieldError
from muster.runtime.info import Info, Late, PodSet, Variables, text


def errors_of(info: Info, *checks: Callable[[Info], Any]) -> list[FieldError]:
    """Run these checks, and return the errors that they raise."""
    errors = []
    for check in checks:
        try:
            check(info)
        except InvalidFieldError as error:
            errors.append(error.error)
    return errors


def reserved(info: Info, names: Sequence[str]) -> Findings:
    """Return an error for each variable in `names` that the user sets; for a TrainJob, one error lists all."""
    findings = Findings()
    found = [(index, variable) for index, variable in enumerate(info.user_env.variables) if variable.name in names]
    if found and info.train_job:
        listed = " ".join(sorted({variable.name for _, variable in found}))
        message = f"must not have reserved envs, invalid envs configured: [{listed}]"
        value = [variable.name for variable in info.user_env.variables]
        findings.errors.append(FieldError(info.user_env.path, message, value))
        return findings
    for index, variable in found:
        message = f"is set by Muster for framework {info.framework}; remove it (reserved variables: {', '.join(names)})"
        findings.errors.append(FieldError(f"{info.user_env.path}[{index}].name", message, variable.name))
    return findings


def yielding(info: Info, variables: Variables) -> Variables:
    """Return the variables, but for a TrainJob without the variables that its user sets.

    A user's value takes precedence, unless it was rejected as an error.
    """
    if info.train_job is None:
        return variables
    given = {variable.name for variable in info.user_env.variables}
    return {name: value for name, value in variables.items() if name not in given}


def give(info: Info, pod_set: PodSet, plugin: str, variables: Variables, port: int) -> None:
    """Set variables in the framework's container and in additional containers, and open a port."""
    for container in [*([pod_set.target] if pod_set.target else []), *info.injections]:
        container.set(plugin, variables)
    pod_set.port(port)


def rank(info: Info, pod_set: PodSet) -> tuple[Late, str]:
    """Return the pod's rank, and the source of this value."""
    return Late(lambda: pod_set.rank), f"index of the pod in {info.workload}"


def leader(info: Info, port: int | None = None) -> tuple[Late, str]:
    """Return the host name of rank 0, with a port if one is given, and the source of this value."""
    address = info.leader if port is None else lambda: f"{text(info.leader())}:{port}"
    return Late(address), f"rank 0 of {info.workload}"


def size(info: Info) -> tuple[str, str]:
    """Return the number of pods, and the source of this value."""
    return str(info.size), f"number of pods of {info.workload}"
