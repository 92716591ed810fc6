"""`muster restart`: starts parts of a plane anew, with what is installed and configured now."""

import click

from musterctl.cluster import existing
from musterctl.kind.cluster import KindCluster
from musterctl.options import existing_name_option
from musterctl.plane import state
from musterctl.plane.machine import LocalError


class _Part(click.Choice[str]):
    """A part of a plane, or one of a node pool's pair."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; its plane says whether it has that pool."""
        return value if state.pool_of(value) else super().convert(value, param, ctx)


@click.command()
@click.argument("parts", metavar="PART...", nargs=-1, required=True, type=_Part(state.ALL))
@existing_name_option
def restart(parts: tuple[str, ...], name: str) -> None:
    """Starts parts of a plane anew.

    PART is a name that `muster status` shows. Each is started with the settings and packages that are there now; the
    command returns when it is ready.
    """
    plane = existing(name)
    if isinstance(plane, KindCluster):
        raise LocalError(
            f"{name} is a kind cluster: `muster kubectl --name {name} rollout restart deployment -n muster-system`"
        )
    for part in dict.fromkeys(parts):
        plane.restart(part)
        click.echo(f"{part} runs again, as process {plane.part(part).pid}")
