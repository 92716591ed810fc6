"""Follows the file with the scheduler configuration while the extender runs.

A ConfigMap that is mounted changes by the swap of a symbolic link some levels above the file, and editors write files
in many ways; what all of them have in common is that the text is another one afterwards. The file is small, so that its
text is read and compared every second; nothing else would see a change that leaves size and time as they were.

A good text takes effect with the next cycle. A bad one changes nothing: the one before it stays, and log, metric and an
Event say so once, until the text is another one again.
"""

import threading
from collections.abc import Callable
from pathlib import Path

import structlog
from prometheus_client import Counter, Gauge

from extender.planner.configuration.resolve import Effect, Report
from extender.planner.cycle import report_of
from extender.planner.framework.config import SchedulerConfig, parse

log = structlog.get_logger()
RELOADS = Counter("muster_config_reloads_total", "Changes of the scheduler configuration's file, by result", ["result"])
CURRENT = Gauge(
    "muster_config_current", "1 while the planner runs with what the configuration's file says, 0 if that is wrong"
)
FINDINGS = Gauge(
    "muster_config_findings", "Names in the configuration that do not do what their project says", ["effect"]
)

INTERVAL_S = 1.0


class ConfigFile:
    """The file, and the configuration that was last good; without a file that is the default one."""

    def __init__(self, file: Path | None) -> None:
        """Reads the file for the first time. Raises ValueError that says what is wrong in which file."""
        self._file = file
        self._seen = self._text()
        if self._seen is None:
            raise ValueError(f"{file}: {self._why_unreadable()}")
        report = report_of(self._seen)
        if report.errors:
            raise ValueError(f"{file}: {'; '.join(report.errors)}")
        self.current = parse(self._seen)
        self._tell(report)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="config-file", daemon=True)
        self._use: Callable[[SchedulerConfig], None] = lambda _: None
        self._refuse: Callable[[str], None] = lambda _: None

    def follow(self, use: Callable[[SchedulerConfig], None], refuse: Callable[[str], None]) -> None:
        """Says who is told of a good configuration, and who of a bad one with all that is wrong with it."""
        self._use, self._refuse = use, refuse

    def start(self) -> None:
        """Starts to follow the file, if there is one."""
        if self._file is not None:
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    def look(self) -> None:
        """Reads the file; a text that is not the last one is used, or refused."""
        text = self._text()
        if text == self._seen:
            return
        self._seen = text
        report = Report(errors=[self._why_unreadable()]) if text is None else report_of(text)
        if text is None or report.errors:
            why = "; ".join(report.errors)
            RELOADS.labels("refused").inc()
            CURRENT.set(0)
            log.error("configuration refused, the one before it stays", file=str(self._file), why=why)
            self._refuse(f"{self._file} is refused, the configuration before it stays: {why}")
            return
        self.current = parse(text)
        RELOADS.labels("used").inc()
        self._tell(report)
        self._use(self.current)

    def _tell(self, report: Report) -> None:
        """The report of a configuration that is used from now on; of the default one there is nothing to say."""
        if self._file is None:
            return
        CURRENT.set(1)
        for effect in (Effect.DIFFERENT, Effect.NONE):
            FINDINGS.labels(effect.value).set(len(report.of(effect)))
        log.info(
            "configuration",
            file=str(self._file),
            different=[str(each) for each in report.of(Effect.DIFFERENT)],
            without_effect=[str(each) for each in report.of(Effect.NONE)],
        )

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            try:
                self.look()
            except Exception:
                log.exception("the configuration's file could not be looked at; it is tried again")

    def _text(self) -> str | None:
        """What the file says; None if it cannot be read."""
        if self._file is None:
            return ""
        try:
            return self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _why_unreadable(self) -> str:
        try:
            (self._file or Path()).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return f"it cannot be read: {error}"
        return "it could not be read a moment ago"
