"""The end of a run in which everything was skipped: it tested nothing, so it does not pass.

The conftest of a folder whose tests need much of the machine imports the hook by name. A reason says what to install.
"""

import pytest
from check.words import NOTHING

_EXIT_CODE = 2


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End with 2, and say why in one line, where all tests that were chosen have been skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    told = reporter.stats if reporter else {}
    skipped = told.get("skipped", [])
    if not skipped or any(told.get(word) for word in ("passed", "failed", "error", "xfailed", "xpassed")):
        return
    session.exitstatus = _EXIT_CODE
    reasons = dict.fromkeys(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    reporter.write_line(f"\n{NOTHING}{'; '.join(reasons)}")
