"""The output of `muster job view`, and lines about the Events of any object."""

from collections.abc import Iterator

from muster.api import names
from muster.api.kubernetes import core, pod_problems
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from muster.volcano.tasks import restarts
from musterctl.cluster import JSON
from musterctl.lastlog import last_line
from musterctl.output.listing import age, since

_COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
_EVENTS_SHOWN = 10


def view_lines(client: Client, job: JSON) -> Iterator[str]:
    """Yield the lines about a Job: its phase and reason, its gang, tasks, pods and Events."""
    metadata, spec, status = job["metadata"], job.get("spec", {}), job.get("status", {})
    state = status.get("state", {})
    yield f"Name:       {metadata['name']}"
    yield f"Namespace:  {metadata['namespace']}"
    yield f"Queue:      {spec.get('queue', '')}"
    yield f"Age:        {age(job)}"
    why = ": ".join(part for part in (state.get("reason", ""), state.get("message", "")) if part)
    held = f" for {since(state['lastTransitionTime'])}" if state.get("lastTransitionTime") else ""
    yield f"Phase:      {state.get('phase') or 'not seen yet'}{held}{f' ({why})' if why else ''}"
    counts = ", ".join(f"{status[name]} {name}" for name in _COUNTERS if status.get(name))
    yield f"Pods:       {counts or 'none'}; at least {spec.get('minAvailable', 0)} start together"
    yield "Restarts:   {} of at most {}".format(*restarts(status.get("retryCount", 0), spec.get("maxRetry")))
    yield f"Gang:       {_gang(client, job)}"
    yield "Tasks:"
    for index, task in enumerate(spec.get("tasks", [])):
        name = task.get("name") or f"default{index}"
        phases = status.get("taskStatusCount", {}).get(name, {}).get("phase", {})
        shown = ", ".join(f"{count} {phase}" for phase, count in phases.items()) or "no pods"
        yield f"  {name}: {task.get('replicas', 0)} wanted, {shown}"
    yield from _pods(client, job)
    yield from event_lines(client, job)


def event_lines(client: Client, obj: JSON) -> Iterator[str]:
    """Yield lines about the latest Events of an object; Events of cluster-scoped objects are in namespace `default`."""
    selector = f"involvedObject.uid={obj['metadata']['uid']}"
    namespace = obj["metadata"].get("namespace") or "default"
    try:
        events = client.list(core.EVENTS, namespace, field_selector=selector)
    except Forbidden:
        yield f"Events: you cannot list the Events of namespace {namespace}"
        return
    yield "Events:" if events else "Events: none"
    for event in sorted(events, key=lambda event: event.last_timestamp or "")[-_EVENTS_SHOWN:]:
        yield f"  {since(event.last_timestamp)} ago  {event.type} {event.reason}: {event.message.strip()}"


def _gang(client: Client, job: JSON) -> str:
    try:
        group = client.get(
            POD_GROUPS, f"{job['metadata']['name']}-{job['metadata']['uid']}", job["metadata"]["namespace"]
        )
    except NotFound:
        return "none now"
    why = f" ({group.why_waiting})" if group.why_waiting else ""
    return f"{group.status.phase or 'Pending'}{why}"


def _pods(client: Client, job: JSON) -> Iterator[str]:
    selector = f"{names.JOB_NAME}={job['metadata']['name']}"
    pods = client.list(core.PODS, job["metadata"]["namespace"], label_selector=selector)
    yield "Pods:" if pods else "Pods: none"
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        began = pod_problems.deletion_began(pod.metadata)
        phase = f"Terminating for {since(began)}" if began else pod.status.phase
        hindered = pod_problems.problem(pod) or pod_problems.failure(pod)
        why = f" ({hindered.words})" if hindered else ""
        yield f"  {pod.metadata.name}: {phase}{f' on {pod.spec.node_name}' if pod.spec.node_name else ''}{why}"
    yield from (f"  {line}" for line in last_line(client, pods))
