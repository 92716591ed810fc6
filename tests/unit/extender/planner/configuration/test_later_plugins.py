"""A plugin that is installed while a process runs is refused by that process, with the reason."""

from importlib.metadata import EntryPoint

import pytest

from extender.planner import cycle
from extender.planner.framework import config, registry

TEXT = "actions: enqueue, tidy\ntiers: [{plugins: [{name: quietnodes}, {name: nobodys}]}]\n"


def test_what_came_later_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a file and the planner agree: neither takes half of it."""
    cycle.report_of("")  # the process has looked at its packages
    later = {registry.PLUGIN_GROUP: "quietnodes", registry.ACTION_GROUP: "tidy"}
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint(later[group], "absent:Thing", group)])
    action, plugin, unknown = cycle.report_of(TEXT).errors
    for error, name in ((action, "there is no action 'tidy'"), (plugin, "there is no plugin 'quietnodes'")):
        assert name in error
        assert error.endswith("it was installed after this process started, which knows it after a restart")
    assert unknown.startswith("tiers[0].plugins[1]: there is no plugin 'nobodys'; valid plugins: ")
    assert "restart" not in unknown
    with pytest.raises(ValueError, match="quietnodes"):
        cycle.Parts().of(config.parse(TEXT))
