"""The built-in plugins, in the order in which they run."""

from muster.runtime.framework import Framework
from muster.runtime.plugins.torch import Torch
from muster.runtime.protocols import Plugin


def plugins() -> list[Plugin]:
    """A new instance of each, in fixed order."""
    return [Torch()]


def framework() -> Framework:
    """The framework with all built-in plugins."""
    return Framework(plugins())
