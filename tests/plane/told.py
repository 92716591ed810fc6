"""All that a plane has told: logs, objects but for Secrets, metrics; and what in it should be known to nobody."""

import re
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager

from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import CONFIG_MAPS, EVENTS, PODS
from muster.api.kubernetes.extensions import CERTIFICATE_SECRETS, CertificateSecret
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from musterctl.plane.plane import Plane

_KINDS: tuple[Resource[object], ...] = (CONFIG_MAPS, EVENTS, PODS, PLACEMENTS, POD_GROUPS, QUEUES, JOBS, TRAIN_JOBS)
_SHORTEST = 16
"""Characters: lines that are shorter are no keys."""
_LOOKS = (re.compile(r"PRIVATE KEY"), re.compile(r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\."), re.compile(r"Bearer\s+[\w.-]{9,}"))
"""How keys and tokens look, whosever they are."""
_PUBLIC = ("ca.crt", "config", "ssh-publickey", "id_rsa.pub", "authorized_keys")
"""Keys of Secrets that everybody may read."""


@contextmanager
def secrets_of(client: Client) -> Iterator[set[str]]:
    """Every line of every Secret that there is meanwhile, also of those that go again; as it is, and in base64."""
    found: set[str] = set()

    def seen(_old: CertificateSecret | None, new: CertificateSecret | None) -> None:
        for name, value in ((new.data if new else None) or {}).items():
            if name not in _PUBLIC and not name.endswith(".crt"):
                found.update(lines_of(value))

    reflector = Reflector(client, CERTIFICATE_SECRETS)
    reflector.add_handler(seen)
    reflector.start()
    try:
        yield found
    finally:
        reflector.stop()


def lines_of(value: bytes) -> set[str]:
    """The lines of something secret, and its base64, by which one would know it."""
    lines = value.decode(errors="replace").splitlines()
    encoded = b64encode(value).decode()
    return {line for line in [*lines, encoded] if len(line) >= _SHORTEST and not line.startswith("-----")}


def files_of(plane: Plane) -> set[str]:
    """The same of the plane's own keys and tokens."""
    paths = [*plane.root.rglob("*.key"), *plane.root.rglob("*.token")]
    assert paths
    return set().union(*(lines_of(path.read_bytes()) for path in paths))


def told(plane: Plane, client: Client) -> dict[str, str]:
    """All texts, by where they stand."""
    found = {str(path): path.read_text(errors="replace") for path in plane.root.rglob("*.log")}
    for kind in _KINDS:
        found[kind.plural] = client.request("GET", kind.path(None)).decode()
    for name, port in plane.state.ports.items():
        if name.endswith("-status"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                found[f"metrics of {name}"] = answer.read().decode()
    return found


def betrayed(texts: dict[str, str], secrets: set[str]) -> list[str]:
    """Where something secret stands; never the secret itself."""
    found = []
    for where, text in texts.items():
        found += [f"{where}: a secret of {len(each)} characters" for each in secrets if each in text]
        found += [f"{where}: {look.pattern}" for look in _LOOKS if look.search(text)]
    return sorted(found)
