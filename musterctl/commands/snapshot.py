"""`muster snapshot`: what the planner reads, in a file that can be looked at elsewhere."""

import sys
from pathlib import Path

import click

from extender.explain.clusterdump import ClusterDump
from extender.explain.snapshotfile import save
from muster.api.meta import format_time
from musterctl.cluster import cluster_options, read_dump


@click.command()
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path), help="- is standard output.")
@cluster_options
def snapshot(*, file: Path | None, kubeconfig: Path | None, name: str | None, scheduler_config: Path | None) -> None:
    """Writes what the planner reads into a file for --snapshot of other commands: no secrets, no environment."""
    dump = read_dump(kubeconfig=kubeconfig, name=name, scheduler_config=scheduler_config)
    content = save(dump)
    if file == Path("-"):
        sys.stdout.buffer.write(content)
        return
    file = file or Path(f"muster-snapshot-{format_time(dump.taken_at).replace(':', '')}.json.gz")
    try:
        file.write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"cannot write {file}: {error.strerror}") from error
    click.echo(f"{file}: {len(content)} bytes, {_contents(dump)}")


def _contents(dump: ClusterDump) -> str:
    return ", ".join(f"{len(items)} {kind}" for kind, items in dump.objects.items() if items)
