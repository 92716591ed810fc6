"""The user who runs a command, and the options --user and --mine, which select workloads by their creator."""

from collections.abc import Callable
from contextlib import closing, suppress

import click

from muster.api.kubernetes import reviews
from muster.api.muster.creator import written
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.options import Command, with_options


def user_options(command: Command) -> Command:
    """Add the options --user and --mine to a command."""
    return with_options(
        command,
        click.option("--user", help="Show only workloads that this user has created."),
        click.option("--mine", is_flag=True, help="Show only your own workloads."),
    )


def chosen_user(user: str | None, client: Callable[[], Client], *, mine: bool) -> str | None:
    """Return the creator whose workloads are shown, in the form that admission records; None for all creators.

    With `mine`, return the user's own name, as the API server reports it.
    """
    if mine and user:
        raise click.UsageError("--user and --mine cannot be combined")
    if mine and not (user := user_of(client())):
        raise click.ClickException("the API server does not report your user name: give it with --user")
    return written(user) if user else None


def user_of(client: Client | None) -> str:
    """Return the user's name, as the API server reports it; "" without a cluster or an answer."""
    if client is None:
        return ""
    with closing(client), suppress(APIError):
        asked = {"apiVersion": reviews.SELF_SUBJECT_REVIEWS.api_version, "kind": reviews.SELF_SUBJECT_REVIEWS.kind}
        return client.create(reviews.SELF_SUBJECT_REVIEWS, asked).status.user_info.username
    return ""
