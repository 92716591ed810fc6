"""Variables that users must not set, because a plugin sets them."""

from collections.abc import Sequence

from muster.api.fields import FieldError, Findings
from muster.runtime.info import Info
from muster.runtime.values import Late
from muster.workloads.adapter import Value

Variables = dict[str, tuple[Value | Late, str]]


def reserved(info: Info, names: Sequence[str]) -> Findings:
    """An error for each; for a TrainJob one for all of them, in the words that its clients know."""
    findings = Findings()
    found = [(index, variable) for index, variable in enumerate(info.user_env.variables) if variable.name in names]
    if found and info.train_job:
        listed = " ".join(sorted({variable.name for _, variable in found}))
        message = f"must not have reserved envs, invalid envs configured: [{listed}]"
        value = [variable.name for variable in info.user_env.variables]
        findings.errors.append(FieldError(info.user_env.path, message, value))
        return findings
    for index, variable in found:
        message = f"is set by Muster for framework {info.framework}; remove it (reserved are {', '.join(names)})"
        findings.errors.append(FieldError(f"{info.user_env.path}[{index}].name", message, variable.name))
    return findings


def overriding(info: Info, names: Sequence[str], what: str) -> Findings:
    """A warning for each variable that makes ours useless."""
    return Findings(
        warnings=[
            f"{info.user_env.path}[{index}].name: {variable.name} {what}; remove it unless you mean that"
            for index, variable in enumerate(info.user_env.variables)
            if variable.name in names
        ]
    )


def yielding(info: Info, variables: Variables) -> Variables:
    """The variables without those that a TrainJob sets itself: where no error forbids it, the user wins."""
    if info.train_job is None:
        return variables
    given = {variable.name for variable in info.user_env.variables}
    return {name: value for name, value in variables.items() if name not in given}
