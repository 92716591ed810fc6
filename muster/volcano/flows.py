"""Rules for a JobFlow's steps, which admission checks, and the controller too, in case admission was bypassed.

A step waits for other steps of the same JobFlow, without cycles. Entries with the same name are one step, as in
Volcano. The Job of such a step is created from the first entry whose dependencies are met. The controller checks a
probe of tasks by the status of the Jobs. A probe that connects to pods is rejected, because users could make the
controller probe networks that they cannot reach themselves.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from muster.api.fields import FieldError
from muster.api.limits import STEP_NEEDS, STEPS
from muster.api.volcano.flow import Flow, FlowDependsOn, JobFlow, Probe

PATH = "spec.flows"
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
"""Pod phases that a probe of tasks may name."""
_NO_DAG = "jobflow flow is not dag"


def targets(flow: Flow) -> list[str]:
    """Return the names of the steps on which this step depends, without duplicates."""
    return list(dict.fromkeys(flow.depends_on.targets)) if flow.depends_on else []


def check_steps(job_flow: JobFlow) -> Iterator[FieldError]:
    """Check all rules for steps except those for patches."""
    flows = job_flow.spec.flows
    over = [*STEPS.exceeded_by(PATH, len(flows)), *STEP_NEEDS.exceeded_by(PATH, sum(map(_needs, flows)))]
    yield from over
    if over:  # the checks below take time proportional to the product of both numbers
        return
    places = {flow.name: index for index, flow in enumerate(flows)}
    for index, flow in enumerate(flows):
        if flow.depends_on:
            yield from _check_needs(flow.depends_on, f"{PATH}[{index}].dependsOn", places)
    found = circle({flow.name: [each for each in targets(flow) if each in places] for flow in flows})
    if found:
        message = f"{_NO_DAG}: {' needs '.join(found)}; remove one of them"
        yield FieldError(f"{PATH}[{places[found[0]]}].dependsOn.targets", message, found[:-1])


def circle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a cycle of steps, with its first name repeated at the end; empty without a cycle."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _needs(flow: Flow) -> int:
    needs = flow.depends_on
    return len(needs.targets) + (len(needs.probe.task_status_list) if needs.probe else 0) if needs else 0


def warn_steps(job_flow: JobFlow) -> Iterator[str]:
    """Yield a warning for each entry that repeats the name of a step: a JobTemplate creates one Job per JobFlow."""
    seen = set[str]()
    for index, flow in enumerate(job_flow.spec.flows):
        if flow.name in seen:
            yield (
                f"{PATH}[{index}].name: another entry has the name {flow.name!r}: both entries are one step, whose "
                "Job is created once the dependencies of one entry are met; for two Jobs, copy the JobTemplate"
            )
        seen.add(flow.name)


def _check_needs(needs: FlowDependsOn, path: str, known: Collection[str]) -> Iterator[FieldError]:
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
                "Muster's controller does not connect to pods; wait for a phase of the task in taskStatusList, or have "
                "the first program of the next Job wait for the address"
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
