"""The settings of all processes: files with defaults, checks of settings files, and tables for the documentation."""

from collections.abc import Iterator
from typing import Final

import msgspec
import yaml

from controller.settings import ControllerSettings
from extender.settings import ExtenderSettings
from history.settings import HistorySettings
from muster.crds.schema import field_descriptions
from muster.process.settings import Settings, SettingsError, file_of, read
from webhook.settings import WebhookSettings

PROCESSES: Final[dict[str, type[Settings]]] = {
    "webhook": WebhookSettings,
    "extender": ExtenderSettings,
    "controller": ControllerSettings,
    "history": HistorySettings,
}


def defaults(process: str) -> str:
    """Return the text of a settings file with the defaults of a process."""
    settings = PROCESSES[process]
    return file_of(settings(), field_descriptions(settings))


def process_of(text: str) -> str:
    """Return the process to which a settings file belongs; "" if the file contains no settings.

    Raise SettingsError for an unknown kind of settings.
    """
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return ""
    if not isinstance(document, dict) or not str(document.get("apiVersion", "")).startswith("config.muster.dev/"):
        return ""
    kinds = {each.KIND: name for name, each in PROCESSES.items()}
    kind = document.get("kind")
    if kind not in kinds:
        raise SettingsError([f"kind: {kind!r} is not a kind of settings; valid kinds are {', '.join(kinds)}"])
    return kinds[kind]


def check_settings(process: str, text: str) -> None:
    """Check a file.

    Check a settings file; raise SettingsError with all errors: of single fields, then of conflicting fields.
    """
    read(text, PROCESSES[process])


def rows(process: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each setting of a process: field, default and description."""
    settings = PROCESSES[process]
    descriptions = field_descriptions(settings)
    for field, value in msgspec.to_builtins(settings()).items():
        yield f"`{field}`", f"`{msgspec.json.encode(value).decode()}`", descriptions[field]
