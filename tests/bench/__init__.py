"""Measurements (`make bench`): figures and ratios against the budgets of the design; nothing is asserted.

One module per subject, each with a `run()` that yields results. CPU time is measured, as the machine may be busy.
"""

import sys
from pathlib import Path

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS / "unit" / "worlds"), str(_TESTS / "neighbours")]  # the builders of all tests
