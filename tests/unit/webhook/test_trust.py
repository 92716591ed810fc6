"""The check that keeps a new replica from the API servers until these trust its certificate."""

from base64 import b64encode
from itertools import count
from pathlib import Path
from typing import Any, cast

import msgspec

from certs.authority import Authority
from muster.api import names
from muster.api.kubernetes.extensions import WEBHOOK_CONFIGURATIONS, WebhookConfiguration
from muster.process.tls import Files
from webhook.main import TrustCheck

VERSIONS = count(1)


def show(check: TrustCheck, *bundles: bytes) -> None:
    """Both configurations, with a webhook for each bundle."""
    webhooks = [
        {"name": str(at), "clientConfig": {"caBundle": b64encode(each).decode()}} for at, each in enumerate(bundles)
    ]
    for reflector in check.reflectors:
        found = {"metadata": {"name": names.WEBHOOKS, "resourceVersion": str(next(VERSIONS))}, "webhooks": webhooks}
        for _ in reflector.mirror.put_all([msgspec.convert(found, WebhookConfiguration)], set()):
            pass


def test_a_replica_waits_until_every_webhook_trusts_its_certificate(tmp_path: Path) -> None:
    """And never again: the process that runs is not taken away by a change that somebody else makes."""
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key")
    check = TrustCheck(cast("Any", None), files)
    assert "the certificate cannot be read" in (check.problem() or "")
    authority, other = Authority.create("this"), Authority.create("another")
    pair = authority.issue("webhook", dns_names=["muster-webhook.n.svc"], server=True)
    files.cert.write_bytes(pair.cert_pem)
    files.key.write_bytes(pair.key_pem)
    waits = f"the caBundles of the {WEBHOOK_CONFIGURATIONS[0].kind} {names.WEBHOOKS} do not trust the certificate"
    assert check.problem() == waits, "there is none yet"
    for bundles in ([b""], [other.cert_pem], [authority.cert_pem, other.cert_pem]):
        show(check, *bundles)
        assert check.problem() == waits
    show(check, authority.cert_pem, other.cert_pem + authority.cert_pem)
    assert check.problem() is None
    show(check, b"", b"")
    assert check.problem() is None
