"""The plugins there are, in the order in which they run."""

from collections.abc import Callable, Mapping, Sequence

from controller.plugins.base import Plugin, PluginError
from controller.plugins.env import Env
from controller.plugins.pytorch import PyTorch
from controller.plugins.svc import Svc

Factory = Callable[[Sequence[str]], Plugin]

BUILT_IN: Mapping[str, Factory] = {"env": Env, "svc": Svc, "pytorch": PyTorch}
PLANNED = ("ssh", "tensorflow", "mpi", "ray", "hcclrank")
"""Plugins of Volcano that this version does not have; a Job that asks for one must not run without it."""


def plugins_for(wanted: Mapping[str, Sequence[str]]) -> list[Plugin]:
    """The Job's plugins in order. Raises PluginError that names every plugin which cannot be had."""
    missing = [name for name in wanted if name not in BUILT_IN]
    if missing:
        listed = ", ".join(
            f"{name} (not available in this version)" if name in PLANNED else f"{name} (unknown)" for name in missing
        )
        raise PluginError(f"spec.plugins: {listed}; this version has {', '.join(BUILT_IN)}")
    return [factory(wanted[name]) for name, factory in BUILT_IN.items() if name in wanted]
