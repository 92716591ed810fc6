"""The errors of a local control plane."""


class LocalError(Exception):
    """Something about the local control plane failed; the message is written for people."""


class BinariesError(LocalError):
    """The programs of the control plane are neither found nor can they be built."""


class RightsError(LocalError):
    """The user of a kubeconfig may not do what Muster needs in that cluster; the message names each right."""


class PartError(LocalError):
    """A part of the plane died or did not become ready in time; the message ends with the tail of its log."""
