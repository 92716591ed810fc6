"""`muster explain`: why a job, gang or pod is where it is."""

from pathlib import Path

import click

from extender.explain.find import explain as explain_in
from extender.explain.report import UnknownNameError
from extender.explain.text import lines_of
from extender.explain.whatif import WhatIf
from musterctl.cluster import (
    cluster_options,
    namespace_option,
    output_option,
    read_dump,
    recovery_option,
    snapshot_option,
)
from musterctl.output.report import print_json, print_lines


@click.command()
@click.argument("kind", type=click.Choice(["job", "gang", "pod"]))
@click.argument("object_name", metavar="NAME")
@namespace_option
@snapshot_option
@recovery_option
@output_option
@cluster_options
def explain(
    *,
    kind: str,
    object_name: str,
    namespace: str,
    snapshot: Path | None,
    recovery_s: float,
    output: str,
    kubeconfig: Path | None,
    name: str | None,
    scheduler_config: Path | None,
) -> None:
    """Says why a job, gang or pod is where it is, and what would change that. Changes nothing."""
    dump = read_dump(kubeconfig=kubeconfig, name=name, scheduler_config=scheduler_config, snapshot=snapshot)
    try:
        report = explain_in(WhatIf(dump, recovery_s=recovery_s), kind, object_name, namespace)
    except (UnknownNameError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        print_json(report)
    else:
        print_lines(lines_of(report, dump.taken_at))
