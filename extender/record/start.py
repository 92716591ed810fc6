"""The recorder of an extender, by its settings."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from extender.configfile import ConfigFile
from extender.record.lines import FORMAT, Head
from extender.record.recorder import Recorder
from extender.record.ring import Ring
from extender.settings import ExtenderSettings

MIB = 1024 * 1024
KEPT = ("suspectConditions", "suspectTaints")
"""The settings that cycles depend on besides timing, as files name them."""


def start_of(settings: ExtenderSettings, config_file: ConfigFile, *, wall_s: Callable[[], float]) -> Recorder | None:
    """Return the recorder that the settings ask for, or None. Raises RingError where it cannot write."""
    if not settings.record_folder:
        return None
    most, age_s = settings.record_mib * MIB, settings.record_hours * 3600
    ring = Ring(Path(settings.record_folder), most_bytes=most, most_age_s=age_s, wall_s=wall_s)
    content: dict[str, Any] = to_builtins(settings)
    head = Head(
        format=FORMAT,
        version=version("muster"),
        pool=settings.node_pool,
        config=config_file.told[0],
        settings=to_builtins(settings.timing) | {name: content[name] for name in KEPT},
    )
    return Recorder(ring, head, wall_s=wall_s)
