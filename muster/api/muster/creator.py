"""Creator of a workload, from its annotation (`names.CREATED_BY`): written by admission, read with a bound.

The API server vouches for it: its webhook writes the user of the request, and the policy muster-creators refuses any
other value. Where neither is installed, it is what its writer says.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from muster.api import names

UNKNOWN: Final = ""
"""The creator of objects whose creator is not verified: all of them count as one user."""
MOST_CHARS: Final = 253
"""Names of users that identity providers give are shorter; the policy muster-creators has the same number."""
_KEPT: Final = 200
_DIGITS: Final = 16


def written(user: str) -> str:
    """Return the value of the annotation for a user: the name itself, of a very long one the beginning and a digest."""
    if len(user) <= MOST_CHARS:
        return user
    return f"{user[:_KEPT]}~{sha256(user.encode()).hexdigest()[:_DIGITS]}"


def creator_of(annotations: Mapping[str, str]) -> str:
    """Return who created an object with these annotations; UNKNOWN without a value, or with one that is too long."""
    value = annotations.get(names.CREATED_BY, UNKNOWN)
    return value if len(value) <= MOST_CHARS else UNKNOWN


def passed_on(annotations: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations of what is made for an object: `given` ones, which name no creator but that object's."""
    creator = creator_of(annotations)
    own = {key: value for key, value in given.items() if key != names.CREATED_BY}
    return {**own, names.CREATED_BY: creator} if creator else own
