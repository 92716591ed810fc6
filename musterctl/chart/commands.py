"""Which rights each command of users needs: docs/rights.md shows the table, and tests hold it.

`needs` are asked for whenever the command does its work; without those of `more` it says less. Rights on kinds with
a namespace are for one namespace: a RoleBinding of `role` gives them. Those of kinds without one take a
ClusterRoleBinding of `muster-view-queues`. Commands that are not here need `muster-admin`, or are for local planes.
"""

from pathlib import Path
from typing import Final

import msgspec

QUEUES: Final = "muster-view-queues"
CLUSTER: Final = "muster-view-cluster"
WHOLE: Final = "whole"
"""In place of rights: all that the planner reads, in the whole cluster, which is what `muster-view-cluster` allows."""


class CommandRights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command, the role that has its rights, and the rights as `verb resource`."""

    command: str
    role: str
    needs: tuple[str, ...]
    more: tuple[str, ...] = ()


def rights_of_commands() -> list[CommandRights]:
    """Return the rights of each command of users."""
    return msgspec.yaml.decode(Path(__file__).with_name("commands.yaml").read_bytes(), type=list[CommandRights])
