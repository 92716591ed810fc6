"""Metrics have one naming scheme, and the page has them all."""

import re
from pathlib import Path

from musterctl.facts import PACKAGES, ROOT, metrics

TIMES = ("_seconds", "_timestamp_seconds")


def test_names_follow_one_scheme() -> None:
    """A prefix, small letters, and the unit or `_total` at the end; each name stands once, and says what it is."""
    every = [metric for package in PACKAGES for metric in metrics(package)]
    assert len({metric.name for metric in every}) == len(every)
    for metric in every:
        assert re.fullmatch(r"muster(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.kind != "histogram" or metric.name.endswith("_seconds"), "those that there are measure time"
        assert ("Seconds" not in metric.help) or metric.name.endswith(TIMES)
        assert len(metric.help) > 5
        assert all(re.fullmatch("[a-z_]+", label) for label in metric.labels)


def test_the_page_has_them_all() -> None:
    """Whatever way it is declared: the text of the code is searched here, and not its syntax tree."""
    page = (ROOT / "docs/metrics.md").read_text()
    for package in ("muster", "webhook", "extender", "controller", "history", "certs", "gangs", "web", "musterctl"):
        for path in Path(ROOT, package).rglob("*.py"):
            for name in re.findall(r'"(muster_[a-z_]+)"', path.read_text()):
                assert f"`{name}`" in page or f"`{name}_total`" in page, name
