"""The workflows for a public forge run targets that exist, with few rights. `make workflows` checks their syntax."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
RULE = re.compile(r"(?m)^([a-z0-9 -]+):(?!=)")


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def workflow(request: pytest.FixtureRequest) -> dict[Any, Any]:
    """One workflow; YAML reads its key `on` as true."""
    found: dict[Any, Any] = yaml.safe_load(request.param.read_text(encoding="utf-8"))
    return found


def commands(workflow: dict[Any, Any]) -> list[str]:
    """Return every line that the workflow runs, also the lines of its matrix."""
    jobs = workflow["jobs"].values()
    texts = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    texts += [each for job in jobs for each in job.get("strategy", {}).get("matrix", {}).get("command", ())]
    return [line.strip() for text in texts for line in text.splitlines()]


def test_targets_exist(workflow: dict[Any, Any]) -> None:
    """Each target of make, and each program of the repository."""
    rules = RULE.findall((ROOT / "Makefile").read_text(encoding="utf-8"))
    targets = {name for names in rules for name in names.split()}
    called = [re.findall(r"\bmake ((?:-\w+ )*[a-z].*)", line) for line in commands(workflow)]
    called_targets = {
        word for found in called for text in found for word in text.split() if re.fullmatch(r"[a-z][a-z0-9-]*", word)
    }
    assert called_targets <= targets
    programs = [line.split()[0] for line in commands(workflow) if line.startswith(".")]
    assert called_targets or programs
    assert [each for each in programs if not (ROOT / each).is_file()] == []


def test_rights_and_times_are_limited(workflow: dict[Any, Any]) -> None:
    """A workflow only reads, except for a job that names more; no job runs for hours without reason."""
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in workflow[True]
    assert all(job["timeout-minutes"] <= 360 for job in workflow["jobs"].values())


def test_secrets_are_no_part_of_commands(workflow: dict[Any, Any]) -> None:
    """Secrets and names that users choose reach a command as variables, so that a shell never reads them as code."""
    assert [line for line in commands(workflow) if "${{" in line and line != "${{ matrix.command }}"] == []


def test_actions_are_named_by_commit() -> None:
    """A tag may lead to another commit tomorrow; the comment has the tag, and an action is the same everywhere."""
    uses = {line for file in FILES for line in re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))}
    assert uses
    assert [line for line in uses if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []
    assert len({line.partition("@")[0] for line in uses}) == len(uses)
