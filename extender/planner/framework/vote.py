"""What a plugin says about a gang that wants to be let in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EnqueueVote:
    """A plugin's opinion; one without an opinion answers None, and the next plugin is asked."""

    admit: bool
    reason: str = ""
    """One word, for a condition."""
    message: str = ""
    """A sentence for the gang's owner. It should stay the same while nothing changes for the gang: each new one is
    written to the PodGroup."""


ADMITTED = EnqueueVote(admit=True)
"""The gang is let in, whatever the plugins after this one would say."""
