"""A real Prometheus (Debian's package) beside a plane: the chart says what it scrapes and which rules it has."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from beside.neighbour import Neighbours
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane

JSON = dict[str, Any]
_INTERVAL: Final = "1s"
_QUERY_TIMEOUT_S: Final = 20


def missing() -> str:
    """Why it cannot run here; empty if it can."""
    absent = [name for name in ("prometheus", "promtool") if not shutil.which(name)]
    return f"{' and '.join(absent)} missing: install Debian's package prometheus" if absent else ""


def jobs(objects: Iterable[JSON], addresses: Mapping[str, Iterable[str]]) -> list[JSON]:
    """The scrape jobs that the Prometheus operator makes of rendered ServiceMonitors, with the operator's labels.

    There are no Endpoints to discover here, as the parts are processes. `addresses` has those of each part's replicas,
    `host:port`, by the part, or by part/port where it has several; everything else follows the chart's own chain: a
    ServiceMonitor selects a Service, the Service selects pods, and the port's name must be one of a container's.
    """
    found = list(objects)
    return [
        _job(monitor, found, endpoint, addresses)
        for monitor in found
        if monitor["kind"] == "ServiceMonitor"
        for endpoint in monitor["spec"]["endpoints"]
    ]


def _job(monitor: JSON, objects: list[JSON], endpoint: JSON, addresses: Mapping[str, Iterable[str]]) -> JSON:
    wanted, port = monitor["spec"]["selector"]["matchLabels"].items(), endpoint["port"]
    namespace = monitor["metadata"]["namespace"]
    assert namespace in monitor["spec"]["namespaceSelector"]["matchNames"]
    services = [each for each in objects if each["kind"] == "Service" and wanted <= each["metadata"]["labels"].items()]
    (service,) = (each for each in services if any(one["name"] == port for one in each["spec"]["ports"]))
    (target,) = (one["targetPort"] for one in service["spec"]["ports"] if one["name"] == port)
    (container,) = _containers(objects, service, target)
    name, part = service["metadata"]["name"], service["metadata"]["labels"]["app.kubernetes.io/component"]
    labels = {"namespace": namespace, "service": name, "endpoint": port, "container": container}
    read = addresses.get(f"{part}/{port}", () if port == "scheduler" else addresses[part])
    replicas = [
        {"targets": [address], "labels": {**labels, "pod": f"{name}-{number}"}} for number, address in enumerate(read)
    ]
    return {
        "job_name": name if port == "status" else f"{name}-{port}",
        "metrics_path": endpoint.get("path", "/metrics"),
        "static_configs": replicas,
    }


def _containers(objects: list[JSON], service: JSON, port: str) -> list[str]:
    """The containers that the Service's port leads to."""
    selected = service["spec"]["selector"].items()
    templates = [each["spec"]["template"] for each in objects if each["kind"] in {"Deployment", "DaemonSet"}]
    return [
        container["name"]
        for template in templates
        if selected <= template["metadata"]["labels"].items()
        for container in template["spec"]["containers"]
        if any(one["name"] == port for one in container.get("ports", ()))
    ]


def rules(objects: Iterable[JSON]) -> JSON:
    """The groups of the chart's PrometheusRule: a rule file's content."""
    (found,) = (each["spec"] for each in objects if each["kind"] == "PrometheusRule")
    return dict(found)


def each_rule(content: JSON) -> list[JSON]:
    """The rules of all groups of a rule file."""
    return [rule for group in content["groups"] for rule in group["rules"]]


class Prometheus:
    """A server that scrapes and evaluates once a second, and what it knows."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.started_s = time.time()

    @classmethod
    def start(cls, neighbours: Neighbours, plane: Plane, scraped: list[JSON], ruled: JSON) -> "Prometheus":
        """Starts one with an empty store in the plane's folder."""
        folder = plane.root / "prometheus"
        folder.mkdir()
        (folder / "rules.yaml").write_text(yaml.safe_dump(ruled))
        config = {
            "global": {"scrape_interval": _INTERVAL, "evaluation_interval": _INTERVAL},
            "rule_files": [str(folder / "rules.yaml")],
            "scrape_configs": scraped,
        }
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(config))
        checked = promtool("check", "config", str(file))
        assert checked.returncode == 0, checked.stdout + checked.stderr
        (port,) = free_ports(1)
        arguments = [
            f"--config.file={file}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        neighbours.start(plane, "prometheus", Path(shutil.which("prometheus") or ""), arguments)
        return cls(f"http://127.0.0.1:{port}")

    def ready(self) -> bool:
        """Whether it answers queries."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:  # noqa: S310 - its own URL
                return bool(answer.status == 200)
        except OSError:
            return False

    def now(self, expression: str) -> list[JSON]:
        """The samples that an expression has at this moment."""
        return list(self._ask("query", query=expression)["result"])

    def since(self, expression: str, start_s: float = 0) -> list[float]:
        """Every value that an expression had since `start_s` (or the start), a second apart; NaN left out."""
        start_s = start_s or self.started_s
        found = self._ask("query_range", query=expression, start=start_s, end=time.time(), step=_INTERVAL)
        values = [float(value) for series in found["result"] for _, value in series["values"]]
        return [value for value in values if value == value]  # noqa: PLR0124 - NaN is not equal to itself

    def label_values(self, metric: str, label: str) -> list[str]:
        """What a dashboard's variable `label_values(metric, label)` offers."""
        return sorted({each["metric"][label] for each in self.now(metric)})

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        return {each["labels"]["alertname"] for each in self._ask("alerts")["alerts"] if each["state"] == "firing"}

    def healthy(self) -> dict[str, int]:
        """How many targets of each job answer."""
        found: dict[str, int] = {}
        for each in self._ask("targets", state="active")["activeTargets"]:
            job = each["labels"]["job"]
            found[job] = found.get(job, 0) + (each["health"] == "up")
        return found

    def _ask(self, what: str, **parameters: object) -> JSON:
        url = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=_QUERY_TIMEOUT_S) as answer:  # noqa: S310 - its own URL
            found = json.load(answer)
        assert found["status"] == "success", found
        return dict(found["data"])


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs promtool."""
    command = [shutil.which("promtool") or "promtool", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
