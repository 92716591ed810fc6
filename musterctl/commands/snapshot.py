"""`muster snapshot`: what the planner reads, in a file that can be looked at elsewhere."""

import sys
from pathlib import Path

import click

from extender.explain.clusterdump import Picture
from extender.explain.snapshotfile import dump
from muster.api.meta import format_time
from musterctl.cluster import cluster_options, look


@click.command()
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path), help="- is standard output.")
@cluster_options
def snapshot(*, file: Path | None, kubeconfig: Path | None, name: str | None, scheduler_config: Path | None) -> None:
    """Writes what the planner reads into a file for --snapshot of other commands: no secrets, no environment."""
    picture = look(kubeconfig=kubeconfig, name=name, scheduler_config=scheduler_config)
    content = dump(picture)
    if file == Path("-"):
        sys.stdout.buffer.write(content)
        return
    file = file or Path(f"muster-snapshot-{format_time(picture.taken_at).replace(':', '')}.json.gz")
    try:
        file.write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"cannot write {file}: {error.strerror}") from error
    click.echo(f"{file}: {len(content)} bytes, {_contents(picture)}")


def _contents(picture: Picture) -> str:
    return ", ".join(f"{len(items)} {kind}" for kind, items in picture.objects.items() if items)
