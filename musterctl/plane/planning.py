"""The planner's configuration of a plane, which may change while the plane lives: its extender follows the file."""

import time
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from muster.api.muster.configuration import PublishedConfig
from musterctl.plane import state
from musterctl.plane.machine import LocalError
from musterctl.plane.plane import Plane
from musterctl.running import published_in

_ANSWER_S: Final = 30.0
_POLL_S: Final = 0.2


def kept(folder: Path) -> str | None:
    """Return the configuration of the plane in this folder, "" for the default one; None if there is no plane."""
    found = state.load(folder)
    return found.options.planning_config if found else None


def keep(folder: Path, text: str) -> None:
    """Keep another configuration for the plane in this folder."""
    found = state.load(folder)
    if found is not None and found.options.planning_config != text:
        options = msgspec.structs.replace(found.options, planning_config=text)
        state.save(folder, msgspec.structs.replace(found, options=options))


def change(plane: Plane, before: str | None) -> bool:
    """Write the file if the configuration is not as before; False if no extender that runs has to take it up."""
    text = plane.state.options.planning_config
    if before is None or text == before or not plane.part(state.EXTENDER).alive:
        return False
    plane.commandlines.write_planning(text)
    return True


def wait_used(plane: Plane) -> None:
    """Return when the extender of a plane that runs uses the configuration; LocalError says why it does not."""
    deadline_s = time.monotonic() + _ANSWER_S
    text, log_file = plane.state.options.planning_config, plane.part(state.EXTENDER).log_file
    with closing(plane.client()) as client:
        while (answer := _answer(published_in(client), text)) is None:
            if time.monotonic() > deadline_s:
                raise LocalError(
                    f"the extender has not said within {_ANSWER_S:.0f} s if it uses the configuration; see {log_file}, "
                    f"or start it anew with that: `muster restart {state.EXTENDER}`"
                )
            time.sleep(_POLL_S)
    if answer:
        raise LocalError(
            f"the extender refuses the configuration, and goes on with the one before it: {answer}; "
            f"`muster restart {state.EXTENDER}` starts it anew, with what is installed now"
        )


def _answer(found: PublishedConfig | None, text: str) -> str | None:
    return found.answer_to(text) if found else None
