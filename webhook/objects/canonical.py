"""The canonical form of a Volcano Job's spec, in which two specs can be compared by meaning.

A typed client (Go, Java) that reads a Job and writes it back produces different JSON. The client omits false, "" and 0,
adds empty structures, and formats amounts and durations differently. Such formal differences do not count as changes.
"""

from collections.abc import Mapping
from typing import Any

from muster.resources.quantity import parse
from muster.resources.runtime import parse_duration_ns

PLUGINS = "plugins"
TEXTS = frozenset(
    {"labels", "annotations", "nodeSelector", "matchLabels", "options", "volumeAttributes", "userAnnotations"}
)
"""Names of fields whose value is a map with arbitrary keys, such as labels."""
AMOUNTS = frozenset({"limits", "requests", "overhead", "capacity"})
"""Names of fields whose value is a map of quantities by resource."""

_DIVISOR = "divisor"
_QUANTITIES = frozenset({"sizeLimit", _DIVISOR})
_DURATIONS = frozenset({"timeout", "runningEstimate"})
_MEAN_NOTHING_EMPTY = TEXTS | AMOUNTS | {PLUGINS, "resources", "metadata", "spec", "template"}
"""Fields in which `{}` means the same as a missing field. In all other fields, `{}` has a meaning of its own:
`emptyDir: {}` is a volume, and `namespaceSelector: {}` selects all namespaces."""
_MEAN_SOMETHING_ZERO = frozenset(
    {
        # The default is true, or the pod's value:
        "allowPrivilegeEscalation", "automountServiceAccountToken", "enableServiceLinks", "hostProcess", "hostUsers",
        "runAsNonRoot",
        # 0 is a valid user, group, mode, device, tier, priority or exit code, or means "at once":
        "runAsUser", "runAsGroup", "fsGroup", "defaultMode", "mode", "lun", "highestTierAllowed", "priority",
        "exitCode", "tolerationSeconds", "terminationGracePeriodSeconds", "ttlSecondsAfterFinished", "minAvailable",
        "timeout",
        # "" means no class (a missing value means the default class), or no host name:
        "storageClassName", "volumeAttributesClassName", "hostnameOverride",
    }
)  # fmt: skip
"""Fields for which false, 0 and "" differ from a missing value. Such fields are pointers in Go, so typed clients write
every value that is set."""
_FILLED_IN: Mapping[str, Mapping[str, str]] = {
    "ports": {"protocol": "TCP"},
    "networkTopology": {"mode": "hard"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared"},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"},
    "scaleIO": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
}
"""Maps a field to the defaults of the map that it contains, or of each map in its list. Older versions of Muster wrote
these defaults into stored Jobs."""


def canonical(spec: Any) -> dict[str, Any]:
    """Return a Job's spec, or a part of the spec, in canonical form.

    The result is a new document, except for the maps in `TEXTS`.
    """
    return _members(spec) if isinstance(spec, dict) else {}


def same(old: Any, new: Any) -> bool:
    """Return True if two specs of Jobs, or two parts of specs, have the same meaning."""
    return bool(old == new or canonical(old) == canonical(new))


def _members(document: Mapping[str, Any]) -> dict[str, Any]:
    members = ((name, _canonical(name, value)) for name, value in document.items())
    return {name: value for name, value in members if not _is_empty(name, value)}


def _canonical(name: str, value: Any) -> Any:
    """Return the canonical form of a field's value; `name` is empty for elements of lists."""
    if isinstance(value, dict):
        return _map(name, {**_FILLED_IN.get(name, {}), **value})
    if isinstance(value, list):
        element = name if name in _FILLED_IN else ""
        return [_canonical(element, each) for each in value]
    if name in _QUANTITIES:
        return _amount(value)
    return _duration(value) if name in _DURATIONS else value


def _map(name: str, value: dict[str, Any]) -> dict[str, Any]:
    if name in TEXTS:
        return value
    if name in AMOUNTS:
        return {resource: _amount(amount) for resource, amount in value.items() if amount is not None}
    if name == PLUGINS:
        return {plugin: arguments or [] for plugin, arguments in value.items()}
    return _members(value)


def _is_empty(name: str, value: Any) -> bool:
    """Return True if a field with this value has the same meaning as a missing field. A divisor of 0 is an example."""
    if value is None or value == [] or (name == _DIVISOR and value == _amount(0)):
        return True
    if value == {}:
        return name in _MEAN_NOTHING_EMPTY
    return value in (False, "", 0) and name not in _MEAN_SOMETHING_ZERO


def _amount(quantity: Any) -> Any:
    """Return a quantity as a pair of numbers: in whole units, and in thousandths of a unit (capped if very large).

    A quantity that cannot be read is returned unchanged.
    """
    try:
        return parse(quantity), parse(quantity, milli=True)
    except ValueError:
        return quantity


def _duration(text: Any) -> Any:
    try:
        return parse_duration_ns(text) if isinstance(text, str) else text
    except ValueError:
        return text
