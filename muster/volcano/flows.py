"""The rules of a JobFlow's steps, for admission, and for the controller where admission was bypassed.

A step waits for other steps of the same JobFlow, not in a circle. A probe of tasks is read in the status of Jobs. One
that connects to pods is refused: a controller that connects to addresses that users choose would look into networks
that these users cannot reach.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from muster.api.fields import FieldError
from muster.api.limits import STEP_NEEDS, STEPS
from muster.api.volcano.flow import Flow, FlowDependsOn, JobFlow, Probe

PATH = "spec.flows"
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
"""Phases of pods, which a task can be asked to have reached."""
_NO_DAG = "jobflow flow is not dag"


def targets(flow: Flow) -> list[str]:
    """Return the names of the steps that come before this one, each once."""
    return list(dict.fromkeys(flow.depends_on.targets)) if flow.depends_on else []


def check_steps(job_flow: JobFlow) -> Iterator[FieldError]:
    """Check everything about the steps but their patches."""
    flows = job_flow.spec.flows
    if not flows:
        message = "a JobFlow without steps would do nothing; add at least one, with the name of a JobTemplate"
        yield FieldError(PATH, message, reason="Required")
    over = [*STEPS.exceeded_by(PATH, len(flows)), *STEP_NEEDS.exceeded_by(PATH, sum(map(_needs, flows)))]
    yield from over
    if over:  # the checks below take time in the product of the two
        return
    yield from _check_names(flows)
    for index, flow in enumerate(flows):
        if flow.depends_on:
            yield from _check_needs(flow.depends_on, f"{PATH}[{index}].dependsOn", [each.name for each in flows])
    names = [flow.name for flow in flows]
    found = circle({flow.name: [each for each in targets(flow) if each in names] for flow in flows})
    if found:
        message = f"{_NO_DAG}: {' needs '.join(found)}; remove one of them"
        yield FieldError(f"{PATH}[{names.index(found[0])}].dependsOn.targets", message, found[:-1])


def circle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a circle, its first name repeated at the end; empty without one."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _needs(flow: Flow) -> int:
    needs = flow.depends_on
    return len(needs.targets) + (len(needs.probe.task_status_list) if needs.probe else 0) if needs else 0


def _check_names(flows: Sequence[Flow]) -> Iterator[FieldError]:
    seen = Counter[str]()
    for index, flow in enumerate(flows):
        if seen[flow.name]:
            message = "another step has this name; a JobTemplate can be used once in a JobFlow, so copy it"
            yield FieldError(f"{PATH}[{index}].name", message, flow.name, "Duplicate")
        seen[flow.name] += 1


def _check_needs(needs: FlowDependsOn, path: str, names: Sequence[str]) -> Iterator[FieldError]:
    known = {*names}
    for place, target in enumerate(needs.targets):
        if target not in known:
            message = f"{_NO_DAG}: vertex is not defined: must be the name of another step of this JobFlow"
            yield FieldError(f"{path}.targets[{place}]", message, target, "NotFound")
    if needs.probe:
        yield from _check_probe(needs.probe, f"{path}.probe", waits=bool(needs.targets))


def _check_probe(probe: Probe, path: str, *, waits: bool) -> Iterator[FieldError]:
    for field, listed in (("httpGetList", probe.http_get_list), ("tcpSocketList", probe.tcp_socket_list)):
        if listed:
            message = (
                "Muster's controller connects to no pods; wait for a phase of the task in taskStatusList, or have the "
                "first program of the next Job wait for the address"
            )
            yield FieldError(f"{path}.{field}", message, reason="Forbidden")
    if probe.task_status_list and not waits:
        yield FieldError(f"{path}.taskStatusList", "name the steps of these tasks in targets", reason="Required")
    for index, each in enumerate(probe.task_status_list):
        where = f"{path}.taskStatusList[{index}]"
        if not each.task_name:
            yield FieldError(f"{where}.taskName", "must be the name of a task of the targets", reason="Required")
        if each.phase not in PHASES:
            yield FieldError(f"{where}.phase", f"must be one of {', '.join(PHASES)}", each.phase, "NotSupported")
