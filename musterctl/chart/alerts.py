"""The chart's alerts as rows of the documentation: what each says, after how long, and what to do."""

import re
from collections.abc import Iterator
from typing import Any, Final

from musterctl.chart.files import FILES, document

ALERTS: Final = FILES / "alerts.yaml"
HEAD: Final = ("alert", "severity", "after", "says", "what to do")
_PART: Final = re.compile(r"\{\{ with \$labels\.(\w+) \}\}(.*?)\{\{ \. \}\}(.*?)\{\{ end \}\}")
_LABEL: Final = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
_VALUE: Final = re.compile(r"\{\{ \$value\b.*?\}\}")


def rules() -> Iterator[dict[str, Any]]:
    """Yield the alerting rules of all groups, in the order of the file."""
    for group in document(ALERTS)["groups"]:
        yield from group["rules"]


def rows() -> Iterator[tuple[str, ...]]:
    """Yield a row per alert, with the cells of `HEAD`."""
    for rule in rules():
        said = rule["annotations"]
        yield (
            f"`{rule['alert']}`",
            rule["labels"]["severity"],
            rule.get("for", "at once"),
            plain(said["summary"]),
            plain(said["description"]),
        )


def plain(text: str) -> str:
    """Return a text of an alert without Prometheus' templates: a label is its name in capitals, a value `so much`."""
    text = _PART.sub(lambda part: f"{part[2]}{part[1].upper()}{part[3]}", text)
    return _VALUE.sub("so much", _LABEL.sub(lambda label: label[1].upper(), text))
