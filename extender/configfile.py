"""Watcher of the scheduler configuration's file.

The file's text is read every second and compared with the last text. A change of a mounted ConfigMap replaces a
symbolic link above the file, so the file's size and time may stay the same. A valid configuration takes effect with the
next cycle. An invalid configuration has no effect: the previous configuration stays in use. The log, a metric and an
Event report the errors of an invalid configuration once.
"""

import threading
from collections.abc import Callable
from pathlib import Path

import structlog
from prometheus_client import Counter, Gauge

from extender.planner.configuration.resolve import ConfigurationReport, NameEffect
from extender.planner.cycle import report_of
from extender.planner.framework.config import SchedulerConfig, parse
from muster.process.counters import from_zero

log = structlog.get_logger()
RELOADS = Counter("muster_config_reloads_total", "Changes of the scheduler configuration's file, by result", ["result"])
from_zero(RELOADS, ("used", "refused"))
CURRENT = Gauge(
    "muster_config_current", "1 while the planner uses the content of the configuration file, 0 if the file is invalid"
)
FINDINGS = Gauge(
    "muster_config_findings",
    "Names in the configuration that have a different meaning or no effect in Muster, by effect",
    ["effect"],
)

INTERVAL_S = 1.0


class ConfigFile:
    """The configuration file and its last valid content, or, if there is no file, the default configuration."""

    def __init__(self, file: Path | None) -> None:
        """Read the file for the first time. Raises ValueError, whose message contains all errors in the text."""
        self._file = file
        self._seen = self._read_file()
        report = _report_of_text(*self._seen)
        if report.errors:
            raise ValueError(f"{file}: {'; '.join(report.errors)}")
        self.current = parse(self._seen[0])
        self.last_report = (self._seen[0], self._seen[0], "")
        """The text in use, the text that was read last, and the reason if the last text was rejected."""
        self._report(report)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="config-file", daemon=True)
        self._use: Callable[[SchedulerConfig], None] = lambda _: None
        self._refuse: Callable[[str], None] = lambda _: None

    def follow(self, use: Callable[[SchedulerConfig], None], refuse: Callable[[str], None]) -> None:
        """Call `use` with each new valid configuration, and `refuse` with the errors of each invalid one."""
        self._use, self._refuse = use, refuse

    def start(self) -> None:
        """Start a thread that checks the file every second, if a file is set."""
        if self._file is not None:
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread that checks the file."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    def read_again(self) -> None:
        """Read the file; if the text has changed, use or reject the new text."""
        seen = self._read_file()
        if seen == self._seen:
            return
        self._seen = seen
        report = _report_of_text(*seen)
        if report.errors:
            why = "; ".join(report.errors)
            RELOADS.labels("refused").inc()
            CURRENT.set(0)
            self.last_report = (self.last_report[0], seen[0], why)
            log.error("configuration refused, the previous configuration stays in use", file=str(self._file), why=why)
            self._refuse(f"{self._file} is refused, the previous configuration stays in use: {why}")
            return
        self.current = parse(seen[0])
        self.last_report = (seen[0], seen[0], "")
        RELOADS.labels("used").inc()
        self._report(report)
        self._use(self.current)

    def _report(self, report: ConfigurationReport) -> None:
        """Log the report about a configuration that has just taken effect, unless it is the default configuration."""
        if self._file is None:
            return
        CURRENT.set(1)
        for effect in (NameEffect.DIFFERENT, NameEffect.NONE):
            FINDINGS.labels(effect.value).set(len(report.findings_of_kind(effect)))
        log.info(
            "configuration",
            file=str(self._file),
            different=[str(each) for each in report.findings_of_kind(NameEffect.DIFFERENT)],
            without_effect=[str(each) for each in report.findings_of_kind(NameEffect.NONE)],
        )

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            try:
                self.read_again()
            except Exception:
                log.exception("the configuration file could not be read; the extender retries")

    def _read_file(self) -> tuple[str, str]:
        """Return the text of the file and an empty reason, or an empty text and the reason why reading failed."""
        try:
            return self._file.read_text(encoding="utf-8") if self._file else "", ""
        except (OSError, UnicodeDecodeError) as error:
            return "", f"the file cannot be read: {error}"


def _report_of_text(text: str, unreadable: str) -> ConfigurationReport:
    return ConfigurationReport(errors=[unreadable]) if unreadable else report_of(text)
