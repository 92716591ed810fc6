"""`muster down`: ends a plane."""

import click

from musterctl.options import existing, name_option


@click.command()
@name_option
def down(name: str) -> None:
    """Stops a plane and removes its folder; of an attached one only what Muster started."""
    existing(name).remove(report=click.echo)
    click.echo(f"plane {name} is down")
