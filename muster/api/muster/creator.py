"""Creator of a workload, from its annotation (`names.CREATED_BY`), which admission writes.

The annotation can be trusted only if the webhook, which writes the request's user, and the policy muster-creators,
which rejects other values, are installed.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from muster.api import names
from muster.api.kubernetes.admission import shared_name

UNKNOWN: Final = ""
"""The creator of objects whose creator is not verified."""
MOST_CHARS: Final = 253
"""Maximum length of a creator's name. User names of identity providers are shorter; the policy muster-creators has the
same limit."""
_KEPT: Final = 200
_DIGITS: Final = 16


def written(user: str) -> str:
    """Return the creator annotation's value for a user: the name, or the beginning and a digest of a very long name."""
    if len(user) <= MOST_CHARS:
        return user
    return f"{user[:_KEPT]}~{sha256(user.encode()).hexdigest()[:_DIGITS]}"


def creator_of(annotations: Mapping[str, str]) -> str:
    """Return the creator of an object with these annotations; UNKNOWN if the value is missing or too long."""
    value = annotations.get(names.CREATED_BY, UNKNOWN)
    return value if len(value) <= MOST_CHARS else UNKNOWN


def counted_user(namespace: str, annotations: Mapping[str, str]) -> str:
    """Return the user whose limits apply to an object: its creator or, if unknown, the namespace's service accounts.

    All service accounts of a namespace count as one user, so that users cannot get additional limits by creating
    accounts.
    """
    return shared_name(creator_of(annotations)) or shared_name(f"system:serviceaccount:{namespace}:")


def passed_on(annotations: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations for a derived object: the `given` ones, and the creator of the original object."""
    creator = creator_of(annotations)
    own = {key: value for key, value in given.items() if key != names.CREATED_BY}
    return {**own, names.CREATED_BY: creator} if creator else own
