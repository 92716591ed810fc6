"""Errors of fields: each has words for the person who can mend it."""

import pytest

from muster.api.fields import FieldError
from webhook.validate.trials import QuotedError


@pytest.mark.parametrize("kind", [FieldError, QuotedError])
@pytest.mark.parametrize("message", ["", " \n"])
def test_no_refusal_is_without_words(kind: type[FieldError], message: str) -> None:
    """It cannot be built, wherever its words come from."""
    with pytest.raises(ValueError, match="spec is rejected, but the error has no message"):
        kind("spec", message, "value")
    assert str(kind("spec", "must be less", 1)).endswith("must be less")
