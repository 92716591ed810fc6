"""The table of known names as a page of the documentation, and the default configuration as a file."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from extender.planner.configuration.known.entry import Argument, Name
from extender.planner.configuration.known.file import ACTION_ARGUMENTS, ACTIONS, METRICS, SECTIONS, SWITCHES, USAGE_DB
from extender.planner.configuration.known.plugins import PLUGINS
from extender.planner.framework.config import SchedulerConfig
from extender.planner.framework.registry import Registry

_HEAD = """\
# The scheduler configuration

`config` in the [settings](configuration.md) of the extender names a YAML file in the shape that KAI-Scheduler and
Volcano share. Files of both load as they are: `volcano-scheduler.conf` (the ConfigMap
`<release>-scheduler-configmap` of Volcano's chart) and KAI-Scheduler's SchedulerConfiguration. This page is generated
from the table that the extender goes by.

```yaml
{defaults}```

`muster config print-defaults` prints that, which is what runs without a file. `muster config check FILE` says what the
extender makes of a file, and the extender logs the same when it starts: what is meant differently here, and what has no
effect. Only what is wrong keeps it from starting: a name that neither project nor Muster knows, or a value that cannot
be used; all of it is named at once, with the path in the file and the names that are valid.

* **Tiers** are an order, as in KAI-Scheduler, and nothing else: plugins of all tiers are asked one after the other. In
  Volcano, victims and votes are also counted tier by tier. To let `sla` decide before `overcommit`, name it before.
* **`gang` and `enqueue`** are there in any case, first if they are not named: members start together or not at all, and
  pods are created when their gang was let in. An action or plugin that is named twice is there once.
* **Switches** (`enable…` of a plugin) that are not at their default take from the plugin the hooks in the table below
  (docs/writing-plugins.md says what each is for); whatever they are at by default is not mentioned.
* **Numbers** may stand in quotation marks, as in KAI-Scheduler's files; switches may not.

## While it runs

The file may change: a ConfigMap that is mounted, or a file that is edited. It is looked at every second. A good one is
used from the next planning cycle on; plugins and actions that did not change stay as they are, with all they remember.
A bad one changes nothing: the one before it stays, and until the file is good again

* the log has a line `configuration refused` with all that is wrong,
* the metric `muster_config_current` is 0 (`muster_config_reloads_total{{result="used|refused"}}` counts changes,
  `muster_config_findings{{effect}}` what the report has),
* an Event `ConfigRefused` is recorded at the Lease that the extender follows:
  `kubectl get events -n muster-system`.
"""
_WITHOUT = "no effect: "


def defaults() -> str:
    """The configuration that runs without a file, as a file."""
    found = SchedulerConfig()
    lines = [f'actions: "{found.actions}"', "tiers:"]
    for tier in found.tiers:
        lines.append("- plugins:")
        for option in tier.plugins:
            lines.append(f"  - name: {option.name}")
            if option.arguments:
                lines.append(f"    arguments: {msgspec.json.encode(option.arguments).decode()}")
            lines += [f"    {switch}: {str(value).lower()}" for switch, value in option.switches.items()]
    return "\n".join(lines) + "\n"


def page(registry: Registry) -> str:
    """docs/scheduler-configuration.md, for these actions and plugins."""
    parts = [
        _HEAD.format(defaults=defaults()),
        *_table("Actions", ("action", "of", "in Muster"), _actions(registry)),
        "",
        "`configurations` (arguments of actions, in Volcano's files):",
        "",
        *_rows(("action", "argument", "in Muster"), _action_arguments()),
        "",
        *_table("Plugins", ("plugin", "of", "in Muster"), _plugins(registry)),
        "",
        *_table("Arguments of plugins", ("plugin", "argument", "default", "in Muster"), _arguments(registry)),
        "",
        *_table("Switches of plugins", ("switch", "of", "default", "hooks that it takes"), _switches()),
        "",
        *_table("The rest of the file", ("field", "of", "in Muster"), _sections()),
    ]
    return "\n".join(parts) + "\n"


def _table(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield from _rows(head, rows)


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, tuple("---" for _ in head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _words(known: Name, name: str, there: Iterable[str]) -> str:
    """What an action or plugin does here."""
    if (known.ours or name) not in there:
        return f"{_WITHOUT}{known.without}"
    return known.differs or "the same"


def _actions(registry: Registry) -> Iterator[tuple[str, ...]]:
    for name, known in ACTIONS.items():
        yield f"`{name}`", known.of, _words(known, name, registry.actions)
    for name in sorted(set(registry.actions) - ACTIONS.keys()):
        yield f"`{name}`", "Muster", ""


def _action_arguments() -> Iterator[tuple[str, ...]]:
    for action, arguments in ACTION_ARGUMENTS.items():
        for name, known in arguments.items():
            yield f"`{action}`", f"`{name}`", f"{_WITHOUT}{known.without}"


def _plugins(registry: Registry) -> Iterator[tuple[str, ...]]:
    for name, known in PLUGINS.items():
        yield f"`{name}`", known.of, _words(known, name, registry.plugins)
    for name in sorted(set(registry.plugins) - PLUGINS.keys()):
        yield f"`{name}`", "Muster", ""


def _arguments(registry: Registry) -> Iterator[tuple[str, ...]]:
    for name, known in PLUGINS.items():
        for argument, what in known.arguments.items():
            default = "" if what.default is None else f"`{_plain(what.default)}`"
            yield (
                f"`{name}`",
                f"`{argument}`",
                default,
                _argument_words(what, (known.ours or name) in registry.plugins),
            )
    for name in sorted(registry.plugins):
        for argument, own in registry.own_arguments(name).items():
            yield f"`{name}`", f"`{argument}`", f"`{own.default}`" if own.default else "", f"Muster's own: {own.means}"


def _argument_words(argument: Argument, there: bool) -> str:  # noqa: FBT001 - private
    if not there:
        return f"{_WITHOUT}as its plugin"
    return f"{_WITHOUT}{argument.without}" if argument.without else "the same"


def _switches() -> Iterator[tuple[str, ...]]:
    for name, known in SWITCHES.items():
        hooks = ", ".join(f"`{hook}`" for hook in known.hooks)
        yield f"`{name}`", known.of, f"`{_plain(known.default)}`", hooks or f"{_WITHOUT}{known.without}"


def _sections() -> Iterator[tuple[str, ...]]:
    fields: Mapping[str, tuple[str, ...]] = {"metrics": METRICS, "usageDBConfig": USAGE_DB}
    for name, known in SECTIONS.items():
        yield f"`{name}`", known.of, f"{_WITHOUT}{known.without}" if known.without else known.differs
        for each in fields.get(name, ()):
            yield f"`{name}.{each}`", known.of, "as the whole"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
