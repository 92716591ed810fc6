"""Manifests that commands are given as files, or on standard input; `webhook.offline.manifests` reads their text."""

import sys
from pathlib import Path

import click

from webhook.offline.manifests import JSON, ManifestError, documents_in


def documents(file: str) -> list[JSON]:
    """Return the objects of a file, `-` for standard input; those of a List one by one.

    ClickException says what is wrong.
    """
    try:
        return list(documents_in(_text(file), file))
    except ManifestError as error:
        raise click.ClickException(str(error)) from error


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:  # bad UTF-8
        raise click.ClickException(f"cannot read {file}: {error}") from error
