"""`muster config …`: configuration for what somebody else runs."""

import click
import yaml

from musterctl.options import name_option
from musterctl.plane import scheduler_config, state


@click.group()
def config() -> None:
    """Prints configuration for parts that you run yourself."""


@config.command()
@click.option("--extender-url", help="Where the extender is; by default the plane's, else the default port.")
@click.option("--kubeconfig", default="", help="The scheduler's kubeconfig; without it, it runs in the cluster.")
@click.option(
    "--shared", is_flag=True, help="For the cluster's own scheduler, which asks Muster about marked pods only."
)
@name_option
def scheduler(extender_url: str | None, kubeconfig: str, name: str, *, shared: bool) -> None:
    """Prints the KubeSchedulerConfiguration of a kube-scheduler for Muster's pods."""
    plane = state.load(state.folder_of(name))
    if extender_url is None and plane is not None:
        extender_url = f"http://127.0.0.1:{plane.ports['extender']}"
    make = scheduler_config.shared_scheduler if shared else scheduler_config.muster_scheduler
    content = make(kubeconfig=kubeconfig, extender_url=extender_url or scheduler_config.DEFAULT_EXTENDER_URL)
    click.echo(yaml.safe_dump(content, sort_keys=False), nl=False)
