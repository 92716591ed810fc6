"""Manifests of JobFlows and of the JobTemplates of their steps."""

from typing import Any

from jobs import task

JSON = dict[str, Any]


def template(name: str, *tasks: JSON, **spec: Any) -> JSON:
    """A JobTemplate whose Jobs end at once unless it has other tasks."""
    return {"metadata": {"name": name}, "spec": {"tasks": list(tasks) or [task("w", 1, run_s=0)], **spec}}


def job_flow(name: str, steps: dict[str, list[str]], **spec: Any) -> JSON:
    """A JobFlow: step → its targets."""
    flows = [{"name": step, "dependsOn": {"targets": targets}} for step, targets in steps.items()]
    return {"metadata": {"name": name}, "spec": {"flows": flows, **spec}}
