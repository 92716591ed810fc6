"""The controller's notes in `status.controlledResources`, Volcano's free-form map; notes survive a restart.

Each note is a text under its own key. The map also contains, for Volcano's clients, the names of the Job's plugins and
claims whose objects exist.
"""

from collections.abc import Iterable

from msgspec import structs

from muster.api.volcano.batch import JobStatus
from muster.volcano.done import SUCCEEDED

RESTART = "muster.dev/restart"
"""Key of the note that lists the parts of the Job which are being restarted (`policies`)."""
COMMANDS = "muster.dev/command"
"""Key of the note with the UIDs of the last executed Commands."""
TIMERS = "muster.dev/timers"
"""Key of the note with the timers that cannot be derived from timestamps (`timers`)."""
BACK_OFF = "muster.dev/refused"
"""Key of the note with the current delay before new pods are created (`timers`)."""
RESTARTS = "muster.dev/restarts"
"""Key of the note with the restarts that count towards the budget (`budget`)."""
_KEYS = frozenset({RESTART, COMMANDS, TIMERS, BACK_OFF, RESTARTS, SUCCEEDED})
_PLUGIN = "plugin-"
_CLAIM = "volume-pvc-"
_COMMANDS_NOTED = 8


def note(status: JobStatus, key: str) -> str:
    """Return the note with this key; "" if the status has no such note."""
    return status.controlled_resources.get(key, "")


def noted(status: JobStatus, key: str, text: str) -> JobStatus:
    """Return the status with this note; an empty text removes the note."""
    if note(status, key) == text:
        return status
    others = {name: value for name, value in status.controlled_resources.items() if name != key}
    return structs.replace(status, controlled_resources={**others, key: text} if text else others)


def words(status: JobStatus, key: str) -> list[str]:
    """Return the elements of the comma-separated note with this key."""
    text = note(status, key)
    return text.split(",") if text else []


def commanded(status: JobStatus, command_uid: str) -> JobStatus:
    """Return the status with a note that this Command was executed; only the last few Commands are kept."""
    return noted(status, COMMANDS, ",".join([*words(status, COMMANDS), command_uid][-_COMMANDS_NOTED:]))


def with_resources(status: JobStatus, plugins: Iterable[str], claims: Iterable[str]) -> JobStatus:
    """Return the status with the names of the plugins whose objects exist, and of the claims for the Job's volumes."""
    own = {key: value for key, value in status.controlled_resources.items() if key in _KEYS}
    found = {f"{_PLUGIN}{name}": name for name in plugins} | {f"{_CLAIM}{name}": name for name in claims}
    return structs.replace(status, controlled_resources=own | found)


def has_plugins(status: JobStatus) -> bool:
    """Return True if objects of job plugins still exist, according to the status."""
    return any(key.startswith(_PLUGIN) for key in status.controlled_resources)
