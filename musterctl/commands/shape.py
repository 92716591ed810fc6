"""`muster shape`: what admission makes of manifests, before they are submitted."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from muster.runtime import registry
from musterctl.cluster import client_of
from musterctl.manifests import yamllines
from musterctl.manifests.documents import documents
from musterctl.manifests.yamllines import YAMLLine
from musterctl.options import admission_config_option
from webhook.config import parse
from webhook.lookup import ClusterLookups, Lookups
from webhook.offline.admission import Admitted, OfflineAdmission
from webhook.offline.consequences import admit_all
from webhook.offline.lookups import Documents
from webhook.patch import Why

_SYNC_TIMEOUT_S = 10.0
_STYLES = {"+": "green", "-": "red", " ": ""}
_COMMENT_COLUMN = 60


@click.command()
@click.option("-f", "--filename", "files", multiple=True, required=True, help="A manifest; - is standard input.")
@click.option("--explain", is_flag=True, help="Show for each added line why it is there and where that is said.")
@click.option("--diff", is_flag=True, help="Show what is added (+) and replaced (-).")
@click.option("-n", "--namespace", default="default", show_default=True, help="For objects that name none.")
@click.option("--online", is_flag=True, help="Ask the cluster for queues, namespaces, runtimes and owners.")
@click.option("--name", envvar="MUSTER_NAME", show_envvar=True, help="With --online: a plane of `muster up`.")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --online: another cluster.  [default: KUBECONFIG, else the plane]",
)
@admission_config_option
def shape(
    *,
    files: tuple[str, ...],
    explain: bool,
    diff: bool,
    namespace: str,
    online: bool,
    name: str | None,
    kubeconfig: Path | None,
    admission_config: str | None,
) -> None:
    """Prints the objects of manifests as Muster's webhook would admit them. Changes nothing.

    A workload is followed by its first pod of each shape, a TrainJob by what it becomes. Without --online no cluster is
    needed: owners, namespaces, queues and runtimes are looked for in the same files, every queue counts as open, and
    runtimes are those that Muster ships. Defaults that the API server fills in are not shown. Ends with 1 if something
    would be refused.
    """
    found = [document for file in files for document in documents(file)]
    groups = parse(admission_config or "").resource_groups
    refused = False
    with _cluster(kubeconfig, name) if online or kubeconfig else _nothing() as cluster:
        admission = OfflineAdmission(Documents(found, namespace), registry.framework(), cluster, groups=groups)
        for number, admitted in enumerate(admit_all(admission, found)):
            if number:
                click.echo("---")
            _show(admitted, diff=diff, explain=explain)
            refused = refused or bool(admitted.errors)
    sys.exit(1 if refused else 0)


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


@contextmanager
def _cluster(kubeconfig: Path | None, name: str | None) -> Iterator[Lookups]:
    """Look-ups in a cluster. Only queues are listed, for messages; all else is read when it is asked for."""
    found = ClusterLookups(client_of(kubeconfig, name))
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
    """The lines of the result, with those that were there before and no longer are: ` `, `+` or `-`."""
    before, after = list(yamllines.lines(admitted.before)), list(yamllines.lines(admitted.after))
    matcher = SequenceMatcher(None, [line.text for line in before], [line.text for line in after], autojunk=False)
    for operation, start, end, new_start, new_end in matcher.get_opcodes():
        if operation == "equal":
            yield from ((" ", line) for line in after[new_start:new_end])
        else:
            yield from (("-", line) for line in before[start:end])
            yield from (("+", line) for line in after[new_start:new_end])
