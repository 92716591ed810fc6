"""`muster replay`: repeats the planner's decisions of a recording, unchanged or in a changed cluster."""

from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from extender.explain.report import UnknownNameError
from extender.record.reading import Recording, RecordingError
from extender.replay.changes import WhatIfChanges
from extender.replay.check import check_recording
from extender.replay.report import what_if
from muster.api.volcano.scheduling import QUEUES, Queue
from musterctl.options import FILE, object_output_option
from musterctl.output.replayed import check_lines, cut_lines, replay_lines
from musterctl.output.report import print_report
from musterctl.reader import plannable


@click.command()
@click.argument("recording", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Compare decisions cycle by cycle, also with --scheduler-config; this is the default without any change.",
)
@click.option(
    "--scheduler-config", "config", type=FILE, callback=plannable, help="Another configuration of the planner."
)
@click.option(
    "--queues", "queue_files", type=FILE, multiple=True, help="Manifests of Queues that replace the recorded ones."
)
@click.option(
    "--queue", "edits", multiple=True, metavar="CHANGE", help="Change a queue: team.deserved.cpu=16, team.weight=3."
)
@click.option("--without-queue", "without", multiple=True, metavar="QUEUE", help="Leave out gangs of this queue.")
@click.option("--add-nodes", type=click.IntRange(min=1), help="Number of copies to add of the node named by --like.")
@click.option("--like", metavar="NODE", help="The recorded node that new nodes copy.")
@click.option(
    "--as-it-was", is_flag=True, help="Replay without changes, to see how closely the replay matches the recording."
)
@object_output_option
def replay(
    *,
    recording: Path,
    only_check: bool,
    config: str | None,
    queue_files: tuple[Path, ...],
    edits: tuple[str, ...],
    without: tuple[str, ...],
    add_nodes: int | None,
    like: str | None,
    as_it_was: bool,
    output: str,
) -> None:
    """Replays the decisions of a recording.

    RECORDING is a folder that `muster record` or an extender has written, or one file in this folder. Without a change,
    the planner repeats each recorded cycle. The report lists decisions that differ from the recorded decisions; any
    difference causes exit code 1. With a change, the recorded workloads are submitted to the changed cluster in
    simulated time. The report compares starts, waits, evictions and utilisation with a replay without the change.
    """
    if (add_nodes is None) != (like is None):
        raise click.UsageError("use --add-nodes together with --like: the number of nodes, and the node to copy")
    changes = bool(queue_files or edits or without or add_nodes)
    if only_check and (changes or as_it_was):
        raise click.UsageError(
            "--check compares decisions on the recorded inputs: the only change that it allows is --scheduler-config"
        )
    try:
        read = Recording(recording)
        if only_check or not (changes or as_it_was or config is not None):
            checked = check_recording(read, config)
            _print(checked, [*check_lines(checked), *cut_lines(read.cuts)], read, output)
            raise SystemExit(1 if checked.different_cycles else 0)
        nodes = {like: add_nodes} if like and add_nodes else {}
        given = {queue.metadata.name: queue for file in queue_files for queue in _queues(file)}
        change = WhatIfChanges(queues=given, edits=edits, without=without, nodes=nodes)
        report = what_if(read, config=config, changed=change, added=change.added)
    except (RecordingError, UnknownNameError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    _print(report, [*replay_lines(report), *cut_lines(read.cuts)], read, output)


def _print(report: Any, lines: list[Any], read: Recording, output: str) -> None:
    for problem in read.problems:
        click.echo(f"Note about the recorded settings: {problem}", err=True)
    content: dict[str, Any] = msgspec.to_builtins(report)
    print_report({**content, "cuts": {path.name: why for path, why in read.cuts.items()}}, lines, output)


def _queues(file: Path) -> list[Queue]:
    """Return the queues in a file of manifests.

    Raise ValueError if the file contains no queues, or also contains other objects.
    """
    try:
        documents = [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: it is not YAML: {' '.join(str(error).split())}") from error
    items = [item for each in documents for item in (each.get("items", [each]) if isinstance(each, dict) else [each])]
    found = []
    for item in items:
        kind = item.get("kind") if isinstance(item, dict) else None
        if kind != QUEUES.kind:
            raise ValueError(f"{file}: the file must contain only Queues, but contains {kind or type(item).__name__}")
        try:
            found.append(msgspec.convert(item, Queue))
        except msgspec.ValidationError as error:
            name = (item.get("metadata") or {}).get("name")
            raise ValueError(f"{file}: Queue {name}: {error}") from error
    if not found:
        raise ValueError(f"{file}: the file contains no Queue")
    return found
