"""What pyproject.toml cannot say: the chart and the demo's jobs stand beside the packages, and travel inside them."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


def _folders(folder: str, names: list[str]) -> list[str]:
    """What is not copied: examples in folders are not the demo's."""
    return [name for name in names if Path(folder, name).is_dir()]


class BuildPy(build_py):
    """Puts them where `muster.chart` and `musterctl.commands.demo` look for them in an installed Muster."""

    def run(self) -> None:
        """Copies them beside the code; an editable install finds those of the repository."""
        super().run()
        if not self.editable_mode:
            shutil.copytree("charts/muster", Path(self.build_lib, "muster/charts/muster"), dirs_exist_ok=True)
            shutil.copytree("examples", Path(self.build_lib, "musterctl/examples"), ignore=_folders, dirs_exist_ok=True)


# The manual page and the completion of shells, which `make dist` writes before it builds the wheel.
SHARED = [(str(file.parent), [str(file)]) for file in sorted(Path("share").rglob("*")) if file.is_file()]

setup(cmdclass={"build_py": BuildPy}, data_files=SHARED)
