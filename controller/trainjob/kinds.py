"""Where the kinds live that plugins make objects of."""

import json
from typing import Any

from muster.api.base import Resource
from muster.kube.client import Client
from muster.kube.errors import NotFound

JSON = dict[str, Any]
_KNOWN = {
    ("v1", "Secret"): "secrets",
    ("v1", "ConfigMap"): "configmaps",
    ("v1", "Service"): "services",
    ("v1", "PersistentVolumeClaim"): "persistentvolumeclaims",
}


class Kinds:
    """The kinds that are known, and those of plugins of others as the API server describes them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: dict[tuple[str, str], Resource[JSON]] = {
            key: _resource(*key, plural, namespaced=True) for key, plural in _KNOWN.items()
        }

    def of(self, api_version: str, kind: str) -> Resource[JSON]:
        """The kind; NotFound if the API server serves none of this name."""
        key = (api_version, kind)
        if key not in self._found:
            self._found[key] = self._discovered(*key)
        return self._found[key]

    def _discovered(self, api_version: str, kind: str) -> Resource[JSON]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        for each in json.loads(self._client.request("GET", path)).get("resources") or []:
            if each["kind"] == kind and "/" not in each["name"]:
                return _resource(api_version, kind, each["name"], namespaced=each["namespaced"])
        raise NotFound(f"the API server serves no {kind} of {api_version}", status=404)


def _resource(api_version: str, kind: str, plural: str, *, namespaced: bool) -> Resource[JSON]:
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, plural, kind, JSON, namespaced=namespaced)
