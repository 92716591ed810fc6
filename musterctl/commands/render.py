"""`muster render`: the chart as plain manifests, for those who do not install with helm."""

from pathlib import Path

import click

from muster.api.names import SYSTEM_NAMESPACE
from musterctl.chart.render import render as rendered


@click.command()
@click.option("-n", "--namespace", default=SYSTEM_NAMESPACE, show_default=True, help="Where Muster's pods run.")
@click.option(
    "-f",
    "--values",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of values, as docs/chart-values.md lists them; may be given several times.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="One value; may be given several times.")
@click.option("--set-file", "files", multiple=True, metavar="NAME=FILE", help="One value, from a file.")
@click.option("--kubernetes-version", help="Of the cluster, e.g. 1.34.2; kube-scheduler's image follows it.")
def render(
    namespace: str, values: tuple[Path, ...], settings: tuple[str, ...], files: tuple[str, ...], kubernetes_version: str
) -> None:
    """Prints what `helm install` would apply, ready for `kubectl apply --server-side -f -`."""
    arguments = [*(f"--set={each}" for each in settings), *(f"--set-file={each}" for each in files)]
    if kubernetes_version:
        arguments.append(f"--kube-version={kubernetes_version}")
    click.echo(rendered(namespace=namespace, values=values, arguments=arguments), nl=False)
