"""The Dockerfile as its stages' instructions, for tests that have no engine to ask."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
FILE = ROOT / "Dockerfile"


class Instruction(NamedTuple):
    """One instruction, with what follows it, on one line."""

    name: str
    text: str

    @property
    def flags(self) -> list[str]:
        """Its options, e.g. --from=build."""
        return [word for word in self.text.split() if word.startswith("--")]

    @property
    def words(self) -> list[str]:
        """What it is about: a JSON list as such, else the words that are no options."""
        if self.text.startswith("["):
            return list(json.loads(self.text))
        return [word for word in self.text.split() if not word.startswith("--")]


def stages() -> list[list[Instruction]]:
    """The instructions of each stage, FROM first; in front of them those before the first FROM."""
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    found: list[list[Instruction]] = [[]]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, text = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, text))
    return found


def copied() -> list[str]:
    """What is taken out of the repository."""
    return [
        source
        for stage in stages()
        for one in stage
        if one.name == "COPY" and not any(flag.startswith("--from") for flag in one.flags)
        for source in one.words[:-1]
    ]


def replay(root: Path, python: Path, values: dict[str, str]) -> Path:
    """Does in a folder what the engine does in the first stage; the environment that comes out.

    `root` stands for the image's root, `python` is the base's Python, and `values` are those of arguments.
    """
    variables = {"PATH": f"{python.parent}:{os.defpath}", "HOME": str(root)} | values
    here = root
    for one in stages()[1]:
        if one.name == "ENV":
            variables |= dict(word.split("=") for word in one.words)
        elif one.name == "ARG" and "=" in one.text:
            name, _, default = one.text.partition("=")
            variables.setdefault(name, default)
        elif one.name == "WORKDIR":
            here = root / one.text.lstrip("/")
            here.mkdir(parents=True)
        elif one.name == "COPY":
            _copy(one.words[:-1], here / one.words[-1])
        elif one.name == "RUN":
            command = re.sub(r"/(opt/muster|wheel)\b", lambda found: f"{root}/{found[1]}", one.text)
            result = subprocess.run(
                ["sh", "-c", command], cwd=here, env=variables, capture_output=True, text=True, check=False
            )
            assert result.returncode == 0, f"{one.text}: {result.stderr}"
    return root / "opt/muster"


def _copy(sources: list[str], target: Path) -> None:
    for source in sources:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, target)
