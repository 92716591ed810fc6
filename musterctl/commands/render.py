"""`muster render`: the chart as plain manifests, for installations without helm."""

from pathlib import Path

import click

from muster.api.names import SYSTEM_NAMESPACE
from musterctl.chart.render import render as rendered


@click.command()
@click.option("-n", "--namespace", default=SYSTEM_NAMESPACE, show_default=True, help="Namespace of Muster's pods.")
@click.option(
    "-f",
    "--values",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of values, as docs/chart-values.md lists them; may be given several times.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="One value; may be given several times.")
@click.option("--set-file", "files", multiple=True, metavar="NAME=FILE", help="One value, from a file.")
@click.option("--kubernetes-version", help="Version of the cluster, e.g. 1.34.2, which kube-scheduler's image follows.")
def render(
    namespace: str, values: tuple[Path, ...], settings: tuple[str, ...], files: tuple[str, ...], kubernetes_version: str
) -> None:
    """Prints the manifests of the Helm chart.

    Apply them with `kubectl apply --server-side -f -`.
    """
    arguments = [*(f"--set={each}" for each in settings), *(f"--set-file={each}" for each in files)]
    if kubernetes_version:
        arguments.append(f"--kube-version={kubernetes_version}")
    click.echo(rendered(namespace=namespace, values=values, arguments=arguments), nl=False)
