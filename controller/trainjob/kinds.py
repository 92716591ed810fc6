"""Resources of the objects that plugins build: the usual kinds, and others as the API server describes them."""

import json
from dataclasses import replace
from typing import Any

from muster.api.base import Resource
from muster.api.kubernetes.core import CONFIG_MAPS, SECRETS, SERVICES
from muster.api.kubernetes.storage import CLAIMS
from muster.kube.client import Client
from muster.kube.errors import NotFound

JSON = dict[str, Any]


class Kinds:
    """Resources by kind; a kind that is not known yet is looked up at the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        usual: tuple[Resource[Any], ...] = (SECRETS, CONFIG_MAPS, SERVICES, CLAIMS)
        self._found: dict[tuple[str, str], Resource[JSON]] = {
            (each.api_version, each.kind): replace(each, type=JSON) for each in usual
        }

    def of(self, api_version: str, kind: str) -> Resource[JSON]:
        """The resource of a kind; NotFound if the API server serves none of this name."""
        key = (api_version, kind)
        if key not in self._found:
            self._found[key] = self._discovered(*key)
        return self._found[key]

    def _discovered(self, api_version: str, kind: str) -> Resource[JSON]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        group, _, version = api_version.rpartition("/")
        for each in json.loads(self._client.request("GET", path)).get("resources") or []:
            if each["kind"] == kind and "/" not in each["name"]:
                return Resource(group, version, each["name"], kind, JSON, namespaced=each["namespaced"])
        raise NotFound(f"the API server serves no {kind} of {api_version}", status=404)
