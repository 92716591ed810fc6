"""`muster simulate`: the effect of changes, without changing the cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any

import click
import msgspec

from extender.explain.changes import DumpChange, changed
from extender.explain.clusterdump import ClusterDump
from extender.explain.own import demands
from extender.explain.pools import in_pool, pools_of
from extender.explain.queues import changed_shares, queue_reports, queue_reports_of
from extender.explain.report import UnknownNameError
from extender.explain.text import TextLine
from extender.explain.whatif import WhatIf
from extender.simulate.placing import simulate as run
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.core import NAMESPACES, NODES, PRIORITY_CLASSES, Pod
from muster.api.unchecked import mapping, value_at
from muster.api.volcano.batch import JOBS
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES
from muster.api.volcano.scheduling import QUEUES, PodGroup
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from muster.workloads.kind import pod_templates
from musterctl import completion
from musterctl.allowed import dump_for
from musterctl.options import admission_config_option, documents
from musterctl.output.report import demand_lines, print_report, simulated_lines
from musterctl.reader import ClusterReader, planned_namespace_option, recovery_option, report_options
from musterctl.users import user_of
from webhook.config import parse
from webhook.offline.manifests import JSON, ManifestError
from webhook.offline.submission import Submission

_NODES = completion.names_of(NODES)


@click.command()
@click.option("-f", "--filename", "files", multiple=True, help="Submit this manifest; - is standard input.")
@click.option("--add-nodes", type=click.IntRange(min=1), help="Number of copies to add of the node named by --like.")
@click.option("--like", metavar="NODE", shell_complete=_NODES, help="The node that new nodes copy.")
@click.option("--cordon", multiple=True, metavar="NODE", shell_complete=_NODES, help="Cordon this node.")
@click.option(
    "--without",
    multiple=True,
    metavar="JOB",
    shell_complete=completion.names_of(JOBS),
    help="Delete this Job with its pods.",
)
@click.option(
    "--queue", "queues", multiple=True, metavar="CHANGE", help="Change a queue: team.deserved.cpu=16, team.weight=3."
)
@planned_namespace_option
@admission_config_option
@recovery_option
@report_options
def simulate(
    *,
    files: tuple[str, ...],
    add_nodes: int | None,
    like: str | None,
    cordon: tuple[str, ...],
    without: tuple[str, ...],
    queues: tuple[str, ...],
    namespace: str | None,
    admission_config: str | None,
    output: str,
    read: ClusterReader,
) -> None:
    """Shows which gangs would start or wait after changes.

    The command lists the nodes of gangs that would start, and the reasons why other gangs would wait. It changes
    nothing. If you are not allowed to list the whole cluster, the command shows only whether admission and the queues
    would accept manifests.
    """
    if (add_nodes is None) != (like is None):
        raise click.UsageError("use --add-nodes together with --like: the number of nodes, and the node to copy")
    space = read.namespace(namespace)
    dump = dump_for(read, space)
    if not dump.whole and (add_nodes or cordon or without or queues):
        raise click.UsageError(
            "only users who can list the whole cluster can simulate these changes; use only -f instead"
        )
    submission = _read_submission(files, dump, read, space, admission_config or "")
    change = DumpChange(
        space,
        without=list(without),
        cordoned=list(cordon),
        queues=list(queues),
        added={like: add_nodes} if like and add_nodes else {},
        new=submission.items,
    )
    if not dump.whole:
        known = {report.queue: report for report in queue_reports_of(dump.objects_of(QUEUES))}
        asked = demands(WhatIf(changed(dump, change)), submission.gangs, known)
        report = {"ignored": submission.ignored, "demands": asked}
        print_report(report, demand_lines(asked, submission.ignored), output)
        return
    _check_classes(submission, dump)
    try:
        after = changed(dump, change)
        pools = pools_of(after)
        worlds = [WhatIf(in_pool(after, pool)) for pool in pools]
        shares = [report for each in worlds for report in queue_reports(each)] if queues else []
    except (UnknownNameError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    olds = [WhatIf(in_pool(dump, pool)) for pool in pools] if queues else []
    before = [report for each in olds for report in queue_reports(each)]
    gangs_after = [gang for each in worlds for gang in run(each, submission.gangs)]
    more = {"queues": shares} if queues else {}
    lines: list[TextLine | str] = [*changed_shares(before, shares), *simulated_lines(gangs_after, submission.ignored)]
    print_report({"ignored": submission.ignored, "gangs": gangs_after} | more, lines, output)


def _read_submission(
    files: tuple[str, ...], dump: ClusterDump, read: ClusterReader, namespace: str, config: str
) -> Submission:
    """Return the objects that result from submitting these files; `config` is the configuration of the webhook."""
    try:
        found = [(file, list(documents(file))) for file in files]
        submission = Submission(
            namespace,
            dump.taken_at,
            {item.metadata.name: item.value for item in dump.objects_of(PRIORITY_CLASSES)},
            dump.objects_of(NAMESPACES),
            dump.objects_of(QUEUES),
            groups=parse(config),
            user=user_of(read.client()) if files else "",
            sources=_sources([each for _, objects in found for each in objects], read.client, namespace),
        )
        for file, objects in found:
            submission.add(objects, file)
        submission.finish()
        for title in submission.released:
            click.echo(f"{title} is suspended; it is simulated as if it were released", err=True)
    except ManifestError as error:
        raise click.ClickException(str(error)) from error
    return submission


def _check_classes(submission: Submission, dump: ClusterDump) -> None:
    """Raise ClickException if manifests name a PriorityClass that the cluster lacks: admission would refuse them."""
    named = {item.spec.priority_class_name for _, item in submission.items if isinstance(item, (Pod, PodGroup))}
    if lacking := sorted(named - {item.metadata.name for item in dump.objects_of(PRIORITY_CLASSES)} - {""}):
        raise click.ClickException(
            f"no PriorityClass with name {lacking[0]} was found, so no pod could be created; "
            "`kubectl get priorityclasses` lists them"
        )


def _sources(objects: Sequence[JSON], connect: Callable[[], Client | None], namespace: str) -> Iterator[JSON]:
    """Yield the runtimes of the TrainJobs, and the JobTemplates of the JobFlows, if they exist in the cluster."""
    wanted = [each for each in objects if each.get("kind") in {TRAIN_JOBS.kind, JOB_FLOWS.kind}]
    client = connect() if wanted else None
    if client is None:
        return
    with closing(client):
        for each in wanted:
            space = str(mapping(each.get("metadata")).get("namespace") or namespace)
            for resource, name in _named_in(each):
                with suppress(NotFound, Forbidden):
                    source = client.get(resource, name, None if resource is CLUSTER_TRAINING_RUNTIMES else space)
                    yield {**msgspec.to_builtins(source), "apiVersion": resource.api_version, "kind": resource.kind}


def _named_in(document: JSON) -> Iterator[tuple[Resource[Any], str]]:
    """Yield kind and name of each runtime that a TrainJob names, and of each JobTemplate that a JobFlow names."""
    reference = mapping(value_at(document, ("spec", "runtimeRef")))
    if reference:
        own = reference.get("kind") == TRAINING_RUNTIMES.kind
        yield TRAINING_RUNTIMES if own else CLUSTER_TRAINING_RUNTIMES, str(reference.get("name"))
    for _, step in pod_templates(document, [("spec", "flows", "*")]):
        yield JOB_TEMPLATES, str(step.get("name"))
