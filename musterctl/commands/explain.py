"""`muster explain`, which shows the state of a job, gang or pod with reasons; `muster topo`; `muster snapshot`."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from extender.explain.clusterdump import ClusterDump, save
from extender.explain.find import explain as explain_in
from extender.explain.find import gang_named
from extender.explain.own import places
from extender.explain.pools import in_pool, pool_of_object
from extender.explain.report import GangQueueReport, GangReport, UnknownNameError
from extender.explain.text import TextLine, lines_of
from extender.explain.topology import topology_reports
from extender.explain.whatif import WhatIf
from gangs.plainjobs import Refusals, flow_text, is_held_by_user, refusal_of, refusals
from gangs.row import GangRow
from gangs.rows import RowSources, rows
from muster.api import names
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes import core, meta
from muster.api.volcano.flow import JOB_FLOWS
from muster.api.volcano.scheduling import EVICTED, POD_GROUPS, TOO_FEW_PODS
from muster.kube.client import Client
from muster.kube.errors import APIError, Conflict, Forbidden, NotFound, Unauthorized
from muster.workloads.kind import WorkloadKind, with_templates
from muster.workloads.table import KINDS, gang_of
from muster.workloads.verbs import held_text, is_held, released_by
from musterctl import completion
from musterctl.allowed import dump_for
from musterctl.cluster import may_list, whole
from musterctl.lastlog import last_line
from musterctl.options import server_options
from musterctl.output.report import NONE_LINES, place_lines, print_report, topology_lines
from musterctl.reader import ClusterReader, dump_options, planned_namespace_option, recovery_option, report_options
from musterctl.webclient import WebServer
from webhook.objects.names import meant_labels, unknown_keys


@click.command()
@click.argument("what", metavar="[job|gang|pod] NAME", nargs=-1, shell_complete=completion.explained)
@planned_namespace_option
@recovery_option
@server_options
@report_options
def explain(
    *, what: tuple[str, ...], namespace: str, output: str, read: ClusterReader, server: WebServer | None
) -> None:
    """Explains why a job, gang or pod waits or runs where it does.

    A NAME alone refers to a job, which can be a workload of any kind.

    The report includes changes that would let the gang start. The command itself changes no objects. If you cannot list
    the whole cluster, the web page at --server creates the report, without names of other users' workloads. Without
    --server, the report is based on objects in the namespace.
    """
    kind, object_name = _kind_and_name(what)
    space = read.namespace(namespace)
    try:
        dump = dump_for(read, space) if server is None else read()
    except Forbidden:
        assert server is not None  # noqa: S101 # without one the objects of the namespace are read
        if _explain_there(server, read, kind, object_name, space, output):
            return
        dump = dump_for(read, space)
    try:
        pooled = in_pool(dump, pool_of_object(dump, kind, object_name, space))
        report = explain_in(WhatIf(pooled), kind, object_name, space)
    except UnknownNameError as error:
        client = read.client() if kind == "job" else None
        unplaced = why_unplaced(client, object_name, space) if client else ""
        if isinstance(unplaced, GangReport):
            print_report(unplaced, lines_of(unplaced, dump.taken_at), output)
            return
        gone = f"; if it was deleted, `muster history {object_name} -n {space}` shows its events"
        raise click.ClickException(unplaced or f"{error}{gone if kind == 'job' else ''}") from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if isinstance(report, GangReport) and report.reason in {TOO_FEW_PODS, EVICTED}:
        report = _as_refused(read, dump, report)
    pod = dump.pod(space, object_name) if kind == "pod" else None
    hints = [TextLine("", text, "hint") for text in _slips(f"Pod {object_name}", pod.metadata.labels)] if pod else []
    gang = report.gang if isinstance(report, GangReport) else ""
    log = _log(read, dump, gang, object_name, space) if report.cause == "failed" and output == "text" else []
    print_report(report, [*lines_of(report, dump.taken_at), *log, *hints], output)


def _kind_and_name(what: Sequence[str]) -> tuple[str, str]:
    """Return the kind and the name that the command line gives: `big`, `job big` or `job/big`."""
    kind, name = what if len(what) == 2 else what[0].rpartition("/")[::2] if len(what) == 1 else ("", "")  # noqa: PLR2004
    if not name or kind not in {"", "job", "gang", "pod"}:
        given = " ".join(what) or "no argument"
        raise click.UsageError(f"expected NAME, or job, gang or pod and a NAME, not: {given}")
    return kind or "job", name


def _as_refused(read: ClusterReader, dump: ClusterDump, report: GangReport) -> GangReport:
    """Return the report of a gang that waits for its pods, with the reason if the owner cannot create these pods."""
    client, namespace = read.client(), report.gang.partition("/")[0]
    groups = [each for each in dump.objects_of(POD_GROUPS) if each.metadata.key == report.gang]
    if client is None or not groups:
        return report
    pods = [pod for pod in dump.objects_of(core.PODS) if f"{pod.metadata.namespace}/{gang_of(pod)}" == report.gang]
    with closing(client):
        why = refusal_of(groups[0], pods, _refusals(client, namespace))
    return replace(report, summary=f"it waits: {why}", message=why) if why else report


def _log(read: ClusterReader, dump: ClusterDump, gang: str, name: str, namespace: str) -> list[TextLine]:
    """Return the last line of the log of the first failed pod of a gang, or else of the Job or pod with this name."""
    client = read.client()
    if client is None:
        return []
    pods = [
        pod
        for pod in dump.objects_of(core.PODS)
        if pod.metadata.namespace == namespace
        and (gang_of(pod) == gang.partition("/")[2] if gang else name in _names(pod))
    ]
    with closing(client):
        return [TextLine("members", line) for line in last_line(client, pods)]


def _names(pod: core.Pod) -> set[str | None]:
    return {pod.metadata.name, pod.metadata.labels.get(names.JOB_NAME)}


def _explain_there(server: WebServer, read: ClusterReader, kind: str, name: str, namespace: str, output: str) -> bool:
    """Print the report that the web page at --server creates.

    If the page does not answer, print a note on standard error and return False.
    """
    try:
        report = server.explain(read.where, kind, namespace, name)
    except (NotFound, Conflict, Forbidden, Unauthorized) as error:
        raise click.ClickException(f"{server.url} says: {error.message}") from error
    except APIError as error:
        click.echo(f"{server.url} does not answer: {error.message}", err=True)
        return False
    print_report(report, lines_of(report, time.time()), output)
    return True


@click.command()
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path), help="- is standard output.")
@dump_options
def snapshot(*, file: Path | None, read: ClusterReader) -> None:
    """Writes the planner's input to a file, for --snapshot.

    The file contains no Secrets and no environment variables of containers.
    """
    dump = read()
    content = save(dump)
    if file == Path("-"):
        sys.stdout.buffer.write(content)
        return
    file = file or Path(f"muster-snapshot-{meta.format_time(dump.taken_at).replace(':', '')}.json.gz")
    try:
        file.write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"cannot write {file}: {error.strerror}") from error
    counts = ", ".join(f"{len(items)} {kind}" for kind, items in dump.objects.items() if items)
    click.echo(f"{file}: {len(content)} bytes, {counts}")


@click.command()
@click.argument("topology_name", metavar="[NAME]", required=False)
@click.option(
    "--gang",
    default="",
    metavar="[NAMESPACE/]NAME",
    shell_complete=completion.names_of(POD_GROUPS),
    help="Show the ranks of this gang.",
)
@click.option(
    "--resource", "resources", multiple=True, help="Show this resource; may be repeated.  [default: GPUs, cpu]"
)
@click.option("--nodes", is_flag=True, help="Show nodes as well.")
@report_options
def topo(
    *, topology_name: str | None, gang: str, resources: tuple[str, ...], nodes: bool, output: str, read: ClusterReader
) -> None:
    """Draws topologies with the resources of each domain.

    NAME is `hypernodes` for HyperNodes, `default` for the configured levels, or a Topology of Kueue. By default, all
    are drawn. The output shows the free, used and fragmented resources of each domain; with --gang, only nodes of the
    gang's pool count. If you cannot list the whole cluster, the command shows the nodes of the gang, or of all gangs in
    the namespace.
    """
    namespace, _, gang_name = gang.rpartition("/")
    namespace = read.namespace(namespace)
    dump = dump_for(read, namespace)
    try:
        pooled = in_pool(dump, pool_of_object(dump, "gang", gang_name, namespace)) if gang else dump
        what_if = WhatIf(pooled)
        view = gang_named(what_if, gang_name, namespace) if gang else None
        if not dump.whole:
            found = places(what_if, [view.key] if view else [])
            print_report(found, place_lines(found), output)
            return
        reports = topology_reports(what_if, name=topology_name, resources=resources, gang=view, nodes=nodes)
    except (UnknownNameError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    lines = [line for report in reports for line in ("", *topology_lines(report, gang))]
    print_report(reports, lines[1:] or NONE_LINES, output)


def why_unplaced(client: Client, name: str, namespace: str) -> GangReport | str:
    """Return the report of a held workload with this name, or sentences about workloads that have no gang.

    Kinds that the user cannot read, or that the cluster does not serve, are omitted.
    """
    found: list[str] = []
    of_namespace = core.Namespace()
    with suppress(NotFound, Forbidden):
        of_namespace = client.get(core.NAMESPACES, namespace)
    sources = RowSources(namespaces=[of_namespace])
    for kind in (kind for kind in KINDS if kind.labelled):
        with suppress(NotFound, Forbidden):
            workload = client.get(whole(kind.resource), name, namespace)
            sources.held += [(kind, workload)] if is_held_by_user(kind, workload) else []
            refused = _refusals(client, namespace).get(workload["metadata"].get("uid", ""), (0.0, ""))[1]
            found += dict.fromkeys(_sentences(kind, workload, of_namespace, refused))
    with suppress(NotFound, Forbidden):
        sources.train_jobs = [client.get(TRAIN_JOBS, name, namespace)]
    with suppress(NotFound, Forbidden):
        found.append(flow_text(client.get(JOB_FLOWS, name, namespace)))
    there = rows(sources)
    if held := next((row for row in there if row.message == released_by(name, namespace)), None):
        return _held(held)
    for row in (row for row in there if row.kind == TRAIN_JOBS.kind):
        is_blocked = any(each.blocked for each in sources.train_jobs or ())
        state = "blocked" if is_blocked else row.state
        found.append(f"{row.title} is {state}: {row.message or 'the workload currently has no gang'}")
    return "\n".join(found)


def _held(row: GangRow) -> GangReport:
    """Return the report of a held workload, which has no gang."""
    return GangReport(
        gang="",
        workload=f"{row.kind} {row.namespace}/{row.name}",
        state=row.state,
        phase="",
        job_phase="",
        cause="no-pod-group",
        reason="",
        summary=held_text(row.name, row.namespace),
        since=row.created,
        min_member=row.minimum,
        members=0,
        queue=GangQueueReport(row.queue, "", 0, 0, 0, 0, ()),
        pod_sets=[],
    )


def _refusals(client: Client, namespace: str) -> Refusals:
    return refusals(may_list(client, core.EVENTS, namespace, field_selector="reason=FailedCreate") or ())


def _slips(what: str, labels: Mapping[str, str]) -> Iterator[str]:
    for key, meant in meant_labels(labels):
        yield f"{what} has the label {key}; did you mean {meant}?"


def _sentences(
    kind: WorkloadKind, workload: dict[str, Any], of_namespace: core.Namespace, refused: str
) -> Iterator[str]:
    """Yield sentences about why Muster does not place the pods of a workload, or why the workload has no pods."""
    name = f"{kind.resource.kind} {workload['metadata']['name']}"
    metadata = [each.get("metadata") or {} for _, each in with_templates(workload, kind.templates)]
    labels = [each.get("labels") or {} for each in metadata]
    for given in labels:
        yield from _slips(name, given)
    for each in metadata:
        yield from (f"{name}: {text}" for text in unknown_keys({"annotations": each.get("annotations")}))
    if not any(names.QUEUE in given for given in (*labels, of_namespace.metadata.labels)):
        yield f"{name} has no label {names.QUEUE}, so Muster does not place its pods"
    elif any(given.get(names.MANAGED) == "false" for given in labels):
        yield f'{name} has the label {names.MANAGED}: "false", so Muster ignores its pods'
    else:
        yield f"{name} {_without_pods(kind, workload, of_namespace, refused)}"


def _without_pods(kind: WorkloadKind, workload: dict[str, Any], of_namespace: core.Namespace, refused: str) -> str:
    """Return the reason why a workload that Muster places has no gang."""
    if kind.verbs and kind.verbs.ended(workload):
        return "has ended, and its gang no longer exists"
    if of_namespace.metadata.deletion_timestamp:
        return f"gets no pods: namespace {of_namespace.metadata.name} is being deleted"
    if is_held(kind, workload):
        return "is suspended, or scaled to 0"
    return f"has no pods, as they cannot be created: {refused}" if refused else "has no pods yet, so it has no gang"
