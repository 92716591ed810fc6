"""`muster shape`: shows manifests as admission would change them, before they are submitted."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from difflib import SequenceMatcher

import click
from rich.text import Text

from muster.runtime import registry
from musterctl.cluster import Where
from musterctl.options import admission_config_option, documents, where_options
from musterctl.output.terminal import Console
from webhook.caches import ClusterLookups
from webhook.config import parse
from webhook.lookup import Lookups
from webhook.offline.admission import Admitted, OfflineAdmission, submit_all
from webhook.offline.lookups import Documents
from webhook.offline.manifests import YAMLLine, yaml_lines
from webhook.patch import Why

_SYNC_TIMEOUT_S = 10.0
_STYLES = {"+": "green", "-": "red", " ": ""}
_COMMENT_COLUMN = 60


@click.command()
@click.option("-f", "--filename", "files", multiple=True, required=True, help="A manifest; - is standard input.")
@click.option("--explain", is_flag=True, help="Show reason and source of each added line.")
@click.option("--diff", is_flag=True, help="Mark added (+) and replaced (-) lines.")
@click.option(
    "--native",
    is_flag=True,
    help="Show the Kubernetes PodGroup of each gang, and how Muster reads Kubernetes PodGroups.",
)
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of objects without one.")
@click.option("--online", is_flag=True, help="Look up queues, namespaces, runtimes and owners in the cluster.")
@admission_config_option
@where_options
def shape(
    *,
    files: tuple[str, ...],
    explain: bool,
    diff: bool,
    native: bool,
    namespace: str,
    online: bool,
    admission_config: str | None,
    where: Where,
) -> None:
    """Prints manifests as Muster's webhook would admit them.

    Objects are first checked against the API server's schema, which refuses unknown fields, for example. Each workload
    is followed by the first pod of each of its pod templates, and each TrainJob by its compiled objects. Without
    --online and --kubeconfig, no cluster is needed. In this case, owners, namespaces and queues are looked up in the
    same files, and runtimes also among Muster's own runtimes. Every queue then counts as open. Defaults of the API
    server are not shown. The command changes no objects. The option --native also shows the native PodGroup
    (scheduling.k8s.io) that Muster publishes for a gang. It also shows how Muster reads native PodGroups and Workloads
    in the files. The exit code is 1 if an object would be refused.
    """
    found = [document for file in files for document in documents(file)]
    groups = parse(admission_config or "")
    refused = False
    with _cluster(where) if online or where.given else nullcontext() as cluster:
        admission = OfflineAdmission(
            Documents(found, namespace), registry.framework(), cluster, groups=groups, native=native
        )
        for number, admitted in enumerate(submit_all(admission, found)):
            if number:
                click.echo("---")
            _show(admitted, diff=diff, explain=explain)
            refused = refused or bool(admitted.errors)
    sys.exit(1 if refused else 0)


@contextmanager
def _cluster(where: Where) -> Iterator[Lookups]:
    """Yield look-ups in a cluster.

    All queues are listed, because messages name usable queues; other objects are read one by one.
    """
    found = ClusterLookups(where.client())
    queues = found.caches[0].reflector
    queues.start()
    try:
        if not queues.wait_synced(_SYNC_TIMEOUT_S):
            raise click.ClickException("the cluster does not list its queues: is Muster installed there?")
        yield found.lookups
    finally:
        queues.stop()


def _show(admitted: Admitted, *, diff: bool, explain: bool) -> None:
    console = Console(highlight=False)
    if admitted.about:
        console.print(Text(f"# {admitted.about}", "dim"), soft_wrap=True)
    for mark, line in _marked(admitted):
        why = admitted.reasons.get(line.path) if explain and mark != "-" else None
        if diff or explain:
            console.print(_row(mark, line.text, why), soft_wrap=True)
        elif mark != "-":
            click.echo(line.text)
    errors = Console(highlight=False, stderr=True)
    for warning in admitted.warnings:
        errors.print(Text(f"warning: {admitted.title}: {warning}", "yellow"), soft_wrap=True)
    for error in admitted.errors:
        errors.print(Text(f"refused: {admitted.title}: {error}", "red"), soft_wrap=True)


def _row(mark: str, text: str, why: Why | None) -> Text:
    row = f"{mark} {text}".rstrip()
    result = Text(row, _STYLES[mark])
    if why and why.reason:
        result.append(" " * max(2, _COMMENT_COLUMN - len(row)))
        result.append(f"# {why.reason} ({why.source})", "cyan")
    return result


def _marked(admitted: Admitted) -> Iterator[tuple[str, YAMLLine]]:
    """Yield the lines of a manifest with marks: `-` for a removed line, `+` for an added line, ` ` for all others."""
    before, after = list(yaml_lines(admitted.before)), list(yaml_lines(admitted.after))
    matcher = SequenceMatcher(None, [line.text for line in before], [line.text for line in after], autojunk=False)
    for operation, start, end, new_start, new_end in matcher.get_opcodes():
        if operation == "equal":
            yield from ((" ", line) for line in after[new_start:new_end])
        else:
            yield from (("-", line) for line in before[start:end])
            yield from (("+", line) for line in after[new_start:new_end])
