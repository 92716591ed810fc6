"""Manifests of any kind, sent by a client as kubectl sends them: to the path of their kind, unknown fields refused.

A process of kubectl costs as much CPU as fifty of these calls. It is for tests of what kubectl itself does or shows.
"""

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

from tenants import refusal

from muster.api.base import Resource
from muster.kube.client import Client

JSON = dict[str, Any]
SHARED_NAMESPACE = "default"
"""The namespace of dry runs: they leave nothing, and a namespace of its own costs as much as ten of them."""


def changed(manifest: JSON, path: str, value: Any) -> JSON:
    """A copy with one member set, and maps where none are; the path is dotted, numbers are places in lists."""
    result = deepcopy(manifest)
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
    node: Any = result
    for part in parents:
        node = node.setdefault(part, {}) if isinstance(node, dict) else node[part]
    node[last] = value
    return result


@cache
def _served(client: Client, api_version: str) -> dict[str, Resource[JSON]]:
    """Return the kinds of a version of an API, by their names."""
    group, _, version = api_version.rpartition("/")
    found = json.loads(client.request("GET", f"/apis/{api_version}" if group else f"/api/{version}"))["resources"]
    return {
        each["kind"]: Resource(group, version, each["name"], each["kind"], dict[str, Any], each["namespaced"])
        for each in found
        if "/" not in each["name"]
    }


def resource_of(client: Client, manifest: JSON) -> Resource[JSON]:
    """Return the resource of a manifest, whose objects are as they stand."""
    return _served(client, manifest["apiVersion"])[manifest["kind"]]


def as_it_stands(resource: Resource[Any]) -> Resource[JSON]:
    """Return a resource whose objects are not trimmed to what Muster reads."""
    return replace(resource, type=dict[str, Any])


def create(client: Client, manifest: JSON, namespace: str, *, dry_run: bool = False) -> JSON:
    """Create an object in a namespace; return it as it is stored."""
    return client.create(resource_of(client, manifest), manifest, namespace, dry_run=dry_run, strict=True)


def dry_run(client: Client, manifest: JSON, namespace: str = SHARED_NAMESPACE) -> JSON:
    """Return an object as it would be stored, after a dry run."""
    return create(client, manifest, namespace, dry_run=True)


def refusal_of(client: Client, manifest: JSON, namespace: str = SHARED_NAMESPACE) -> str:
    """Return the refusal of a dry run; empty if the object is accepted."""
    return refusal(lambda: dry_run(client, manifest, namespace))
