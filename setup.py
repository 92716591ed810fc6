"""What pyproject.toml cannot say: the chart stands beside the packages, and travels inside one of them."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    """Puts the chart where `muster.chart` looks for it in an installed Muster."""

    def run(self) -> None:
        """Copies it beside the code; an editable install finds that of the repository."""
        super().run()
        if not self.editable_mode:
            shutil.copytree("charts/muster", Path(self.build_lib, "muster/charts/muster"), dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildPy})
