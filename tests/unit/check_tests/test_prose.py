"""Docstrings and messages for the prose linter, on the lines of their source."""

from check.prose import page

SOURCE = '''"""A module.

With more to say.
"""

NAME = "three of them"


class Reader:
    """A reader."""

    size: int
    """Size of it, in bytes."""

    def fail(self, name: str) -> str:
        """Return the reason."""
        return f"{name} is not here: look elsewhere" + "{field} of a template is missing."
'''


def test_docstrings_and_messages_keep_their_lines() -> None:
    """A field is an X; each message is a sentence of its own; what is no sentence is left out."""
    assert page(SOURCE).splitlines() == [
        *("A module.", "", "With more to say.", "", "", "", "", "", ""),
        *("A reader.", "", "", "Size of it, in bytes.", "", "", "Return the reason."),
        "X is not here: look elsewhere. X of a template is missing.",
    ]
