"""What kubeconfig files say of the current context, merged as kubectl merges them."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_LISTS = {"contexts": "context", "clusters": "cluster", "users": "user"}
_FILES = frozenset({"certificate-authority", "client-certificate", "client-key", "tokenFile"})


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The current context: where the API server is and who we are, in the words of the file.

    Names of files are absolute; those in a kubeconfig count from its own folder.
    """

    context: str
    namespace: str
    """Empty if the context names none."""
    cluster: dict[str, Any]
    user: dict[str, Any]


@dataclass(slots=True)
class _Merged:
    current: str = ""
    contexts: dict[str, dict[str, Any]] = field(default_factory=dict)
    clusters: dict[str, dict[str, Any]] = field(default_factory=dict)
    users: dict[str, dict[str, Any]] = field(default_factory=dict)


def read(files: str) -> Kubeconfig:
    """The current context of one file, or of several with the system's separator between them.

    The first file that says something wins, and files that are missing are passed over, as kubectl does it. Raises
    OSError or ValueError for what cannot be read, or names what is not there.
    """
    merged = _Merged()
    found = [path for each in files.split(os.pathsep) if each and (path := Path(each).expanduser()).exists()]
    if not found:
        raise FileNotFoundError("there is no such file")
    for path in found:
        _merge(merged, path)
    context = _one(merged.contexts, merged.current, "contexts", "current-context")
    user = str(context.get("user") or "")
    return Kubeconfig(
        merged.current,
        str(context.get("namespace") or ""),
        _one(merged.clusters, str(context.get("cluster") or ""), "clusters", f"context {merged.current}"),
        merged.users.get(user, {}),
    )


def _merge(merged: _Merged, path: Path) -> None:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:  # its own words quote the file, in which secrets may be
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"{path} is no YAML{f', see line {mark.line + 1}' if mark else ''}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is empty, or not a mapping")  # noqa: TRY004 - of a file, not of an argument
    merged.current = merged.current or str(content.get("current-context") or "")
    for plural, singular in _LISTS.items():
        known: dict[str, dict[str, Any]] = getattr(merged, plural)
        for each in content.get(plural) or ():
            if not isinstance(each, dict) or "name" not in each or not isinstance(each.get(singular) or {}, dict):
                raise ValueError(f"{path}: each of `{plural}` should have a name and a `{singular}`")
            known.setdefault(str(each["name"]), _absolute(each.get(singular) or {}, path.parent))


def _absolute(said: dict[str, Any], folder: Path) -> dict[str, Any]:
    named = {key: str(folder / str(said[key])) for key in _FILES & said.keys() if said[key]}
    return {**said, **named}


def _one(known: dict[str, dict[str, Any]], name: str, plural: str, who: str) -> dict[str, Any]:
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        raise ValueError(f"{who} names {name!r}, which is not among its {plural}: {there}")
    return known[name]
