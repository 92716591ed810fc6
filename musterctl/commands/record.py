"""`muster record`: records the planner's input by watching the cluster, if its extender makes no recording."""

import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import click
from msgspec import to_builtins

from extender.cluster import LiveCluster
from extender.record.folder import FolderError, RecordingFolder
from extender.record.hook import RecordingHook
from extender.record.lines import FORMAT, Head
from extender.record.reading import Recording, RecordingError, status_of
from extender.record.recorder import PlannerRecorder
from extender.replay.replayedworld import settings_of
from muster.api.kubernetes.meta import format_time
from muster.api.muster.pools import DEFAULT_POOL
from muster.kube.client import Client
from musterctl.cluster import Where
from musterctl.options import duration, object_output_option, where_options
from musterctl.output.replayed import status_lines
from musterctl.output.report import print_report
from musterctl.running import config_of, inputs_of, published_by, suspects_of

MIB = 1024 * 1024
_POLL_S = 0.2
_PATIENCE_S = 60.0


@click.command()
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--status", "recorded", type=click.Path(exists=True, path_type=Path), help="Describe a recording.")
@click.option("--for", "for_s", callback=duration, metavar="DURATION", help="Stop after this time, e.g. 2h or 1d.")
@click.option("--most-mib", type=click.IntRange(min=1), default=256, show_default=True, help="Most MiB on disk.")
@click.option(
    "--most-hours", type=click.FloatRange(min=0, min_open=True), default=168.0, show_default=True, help="Oldest part."
)
@click.option("--pool", default=DEFAULT_POOL, help="Node pool.  [default: the nodes of no other pool]")
@object_output_option
@where_options
def record(
    *,
    folder: Path | None,
    recorded: Path | None,
    for_s: float | None,
    most_mib: int,
    most_hours: float,
    pool: str,
    output: str,
    where: Where,
) -> None:
    """Records the planner's input into FOLDER, for `muster replay`.

    The command watches the cluster as the extender does, until it is interrupted. The recording contains no decisions,
    which only an extender can record (its setting recordFolder). The recording contains no Secrets and no environment
    variables of containers.
    """
    if (folder is None) == (recorded is None):
        raise click.UsageError("give either a FOLDER to record into, or --status with a recording")
    try:
        if recorded is not None:
            status = status_of(Recording(recorded))
            print_report(status, status_lines(status), output)
        elif folder is not None:
            recording = RecordingFolder(
                folder, most_bytes=most_mib * MIB, most_age_s=most_hours * 3600, wall_s=time.time
            )
            _record(where.client(), recording, pool, for_s)
    except (FolderError, RecordingError) as error:
        raise click.ClickException(str(error)) from error


def _record(client: Client, recording: RecordingFolder, pool: str, for_s: float | None) -> None:
    """Record until the time is up, or the user interrupts the command."""
    published = published_by(client, [pool])
    suspects, inputs = suspects_of(published, [pool]), inputs_of(published, [pool])
    settings = settings_of(suspects[pool]) if pool in suspects else {}
    settings |= to_builtins(inputs[pool].timing) if pool in inputs else {}
    config = config_of(published.get(pool), pool)
    head = Head(format=FORMAT, version=version("muster"), pool=pool, config=config, settings=settings, planner=False)
    recorder = PlannerRecorder(recording, head, wall_s=time.time)
    hook = RecordingHook(recorder)
    cluster = LiveCluster(client, wake=lambda _: None, pool=pool, hook=hook)
    client.loop.call_soon_threadsafe(cluster.start)
    recorder.start()
    try:
        if not _wait(lambda: cluster.synced, _PATIENCE_S):
            raise click.ClickException(
                f"the cluster cannot be read: "
                f"{cluster.not_ready() or 'the API server has not sent all objects in time'}"
            )
        cluster.ask(lambda _: hook.snapshot_taken())
        until = "until Ctrl-C" if for_s is None else f"until {format_time(time.time() + for_s)}"
        click.echo(f"recording {sum(cluster.sizes().values())} objects into {recording.folder} {until}", err=True)
        threading.Event().wait(for_s)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    finally:
        cluster.stop()
        recorder.stop()


def _wait(done: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
