"""Durations in Go's form ("1h30m", "0.5s"), which Kubernetes' clients use, too."""

import re

_NS = 10**9
_UNIT_NS = {"h": 3600 * _NS, "m": 60 * _NS, "s": _NS, "ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1}
_MAX_NS = 2**63 - 1  # Go's clients cannot read more, some 292 years
_MAX_CHARS = 256
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ms|us|µs|ns|h|m|s)")
_DURATION = re.compile(r"\+?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ms|us|µs|ns|h|m|s))+)")


def parse_duration_ns(text: str) -> int:
    """A duration in whole nanoseconds, equal for every spelling of it; ValueError says how to write one.

    Negative durations, which Go and the schema know, are refused.
    """
    if len(text) > _MAX_CHARS or not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write it like 30s, 5m or 1h30m")
    total = 0
    for whole, part, unit in _PART.findall(text):
        total += int(whole or 0) * _UNIT_NS[unit] + int(part or 0) * _UNIT_NS[unit] // 10 ** len(part)
    if total > _MAX_NS:
        raise ValueError(f"{text!r} is longer than any duration can be; write it like 30s, 5m or 1h30m")
    return total


def parse_duration_s(text: str) -> float:
    """A duration in seconds, as clocks and timeouts count; else as `parse_duration_ns`."""
    return parse_duration_ns(text) / _NS
