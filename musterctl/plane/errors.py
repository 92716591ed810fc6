"""What can go wrong with a local control plane.

LocalError
├── BinariesError   the control plane's programs are neither found nor can they be built
├── RightsError     the user of a kubeconfig may not do what Muster needs
└── PartError       a part died, or did not become ready in time
"""


class LocalError(Exception):
    """Something about the local control plane failed; the message is written for people."""


class BinariesError(LocalError):
    """The programs of the control plane cannot be found or built."""


class RightsError(LocalError):
    """The user of a kubeconfig may not do what Muster needs in that cluster; the message names each right."""


class PartError(LocalError):
    """A part of the plane died or did not become ready; the message ends with the tail of its log."""
