"""`muster features`: the maturity of each feature."""

from operator import attrgetter
from typing import Final, get_args

import click
import msgspec

from musterctl.features import FEATURES, Maturity
from musterctl.output.listing import show_object
from musterctl.output.table import show_rows

COLUMNS: Final = (
    *(("FEATURE", "name"), ("MATURITY", "maturity"), ("SINCE", "since"), ("SWITCHED OFF BY", "off"), ("PAGE", "page")),
)


@click.command()
@click.option("--maturity", type=click.Choice(get_args(Maturity)), help="Only features of this maturity.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def features(*, maturity: Maturity | None, output: str) -> None:
    """Lists features with their maturity and how to disable them.

    For a feature that is off by default, the list shows the setting that enables it. docs/features.md has the same
    table.
    """
    found = [each for each in FEATURES if maturity in {None, each.maturity}]
    if output == "table":
        show_rows([(title, attrgetter(name)) for title, name in COLUMNS], found)
    else:
        show_object({"features": msgspec.to_builtins(found)}, output)
