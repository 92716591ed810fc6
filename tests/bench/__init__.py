"""Measurements (`make bench`): figures and ratios against the budgets of the design; nothing is asserted.

One module per subject, each with a `run()` that yields results. CPU time is measured, as the machine may be busy.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(folder := Path(__file__).parents[1]), str(folder / "unit" / "worlds")]  # the builders of all tests
