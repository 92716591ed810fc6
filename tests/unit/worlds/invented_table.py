"""A process in which the table has the row of an invented kind: its pods are a gang to the whole of Muster.

Run as a program. The row is put into the table's source, as whoever adds a kind does: an import, and a name in KINDS.
"""

import runpy
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import CodeType

TABLE = "muster.workloads.table"
ROWS = b"KINDS: tuple[WorkloadKind, ...] = (\n"


class WithRow(SourceFileLoader):
    """Loads the table with one row more."""

    def get_code(self, fullname: str) -> CodeType:
        """See SourceFileLoader."""
        del fullname
        source = self.get_data(self.path)
        assert source.count(ROWS) == 1
        wanted = source.replace(ROWS, b"from invented_kind import SWARM\n" + ROWS + b"    SWARM,\n")
        code: CodeType = self.source_to_code(wanted, self.path)
        return code


def add_the_row() -> None:
    """Load the table before anything else does."""
    found = find_spec(TABLE)
    assert found
    assert found.origin
    assert TABLE not in sys.modules
    spec = spec_from_file_location(TABLE, found.origin, loader=WithRow(TABLE, found.origin))
    assert spec
    assert spec.loader
    module = sys.modules[TABLE] = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    add_the_row()
    runpy.run_module("invented_kind_run", run_name="__main__")
