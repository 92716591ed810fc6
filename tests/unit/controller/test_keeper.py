"""The keeper of certificates on an API server in memory: what it writes, pass by pass, and what it says."""

import itertools
from base64 import b64encode
from dataclasses import replace
from typing import Any, cast

import pytest
from builders.clocks import Clock
from certificates_world import REPORTS, TERMS, WEBHOOK
from guarded_api import GuardedApi
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

import controller
from certs.authority import Authority
from certs.certificate import Certificate, Pair, read_bundle
from certs.content import Content
from certs.issuing import event_of
from certs.rotation import Drop, Refuse
from controller.certificates import CertificateOptions, Keeper
from controller.worker import Retry
from muster.api import names
from muster.api.kubernetes.extensions import CERTIFICATE_SECRETS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from muster.kube.errors import Conflict, Forbidden

CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
DAY_S = 86400.0


class Kept:
    """A Secret, two configurations of webhooks, and a keeper whose caches show them before each pass."""

    def __init__(
        self,
        issuer: Any = "own",
        *,
        after: "Kept | None" = None,
        wanted: Any = (WEBHOOK, REPORTS),
        trusted: tuple[Certificate, ...] = (),
    ) -> None:
        self.clock = after.clock if after else Clock(1.8e9)
        self.api = after.api if after else GuardedApi(controller)
        self.secret = f"{after.secret}-next" if after else "certs"
        for kind in () if after else CONFIGURATIONS:
            hooks = [{"name": name, "clientConfig": {"caBundle": ""}} for name in ("a", "b")]
            self.api.add(kind, {"metadata": {"name": names.WEBHOOKS}, "webhooks": hooks})
        options = CertificateOptions(secret=self.secret, issuer=issuer, wanted=wanted, terms=TERMS, trusted=trusted)
        client = cast("Any", self.api)
        client.loop = None
        self.keeper = Keeper(client, options, "n", monotonic_s=self.clock, wall_s=self.clock)

    def show(self) -> None:
        """Fill the caches."""
        for reflector in self.keeper.reflectors.values():
            for _ in reflector.mirror.put_all(self.api.all(reflector._resource), set()):
                pass
            reflector.first.set()

    def work(self, after_s: float = 0.0) -> list[str]:
        """One pass; the writes."""
        self.clock.now += after_s
        self.show()
        del self.api.sent[:]
        self.keeper.process("certificates")
        return [f"{each.site.rpartition(' ')[2]} {each.resource.kind}" for each in self.api.sent]

    def rest(self) -> None:
        """Passes until nothing is written any more."""
        for _ in range(6):
            self.work(40.0)
        assert self.work() == []

    def told(self) -> list[str]:
        """The events since the last call."""
        pending = self.keeper._recorder._pending
        found = [f"{key.type} {key.reason}: {key.message}" for key in pending]
        pending.clear()
        return found

    @property
    def data(self) -> dict[str, bytes]:
        """The Secret."""
        return dict(self.api.find(CERTIFICATE_SECRETS, self.secret, "n").data or {})

    @property
    def leaf(self) -> Certificate:
        """The webhook's certificate."""
        return Certificate.read(self.data["tls.crt"])

    def bundles(self) -> list[tuple[Certificate, ...]]:
        """What the webhooks trust."""
        found = [self.api.find(kind, names.WEBHOOKS) for kind in CONFIGURATIONS]
        return [read_bundle(hook.client_config.ca_bundle or b"") for each in found for hook in each.webhooks]


def metric(metric_name: str, /, **labels: str) -> float | None:
    """The value of a metric."""
    return REGISTRY.get_sample_value(f"muster_certificate{metric_name}", labels)


def test_a_first_start() -> None:
    """The Secret is made, then each webhook trusts its authority; then nothing is left to do."""
    kept = Kept()
    assert kept.work() == ["create Secret"]
    assert [each.split(":")[0] for each in kept.told()] == ["Normal AuthorityMade", "Normal CertificateIssued"]
    assert kept.work() == [
        "strategic_patch MutatingWebhookConfiguration",
        "strategic_patch ValidatingWebhookConfiguration",
    ]
    assert all(kept.leaf.signed_by(bundle[0]) for bundle in kept.bundles())
    kept.rest()
    assert kept.api.find(CERTIFICATE_SECRETS, "certs", "n").metadata.labels == {names.MANAGED_BY: names.MANAGER}
    assert {"tls.crt", "tls.key", "reports.crt", "reports.key"} <= kept.data.keys()
    assert (metric("_authorities"), metric("_problems")) == (1, 0)
    assert metric("_expiry_timestamp_seconds", name="tls") == kept.leaf.ends_s
    assert metric("_renewal_timestamp_seconds", name="tls") == kept.leaf.due_s


def test_a_certificate_is_renewed_when_it_is_due() -> None:
    """By the same authority, so that the webhooks keep what they trust."""
    kept = Kept()
    kept.rest()
    before, bundles = kept.leaf, kept.bundles()
    kept.told()
    assert kept.work(before.due_s - kept.clock.now - 1) == []
    assert kept.work(2.0) == ["merge_patch Secret"]
    assert kept.leaf.ends_s > before.ends_s
    assert kept.bundles() == bundles
    assert [each.split(":")[0] for each in kept.told()] == ["Normal CertificateIssued"]


def test_a_caBundle_that_somebody_changed() -> None:  # noqa: N802 - the field's name
    """Becomes what it was."""
    kept = Kept()
    kept.rest()
    before = kept.bundles()
    hooks = [{"name": name, "clientConfig": {"caBundle": b64encode(b"x").decode()}} for name in ("a", "b")]
    kept.api.change(MUTATING_WEBHOOKS, names.WEBHOOKS, {"webhooks": hooks})
    assert kept.work() == ["strategic_patch MutatingWebhookConfiguration"]
    assert kept.bundles() == before


def test_a_write_that_fails() -> None:
    """Fails the pass after all else was done: the other webhooks trust what they should."""
    kept = Kept()
    kept.work()

    def refuse(sent: Any) -> None:
        if sent.resource is MUTATING_WEBHOOKS:
            raise Forbidden("no right to it")

    kept.api.meddle = refuse
    with pytest.raises(Forbidden):
        kept.work()
    assert [bool(each) for each in kept.bundles()] == [False, False, True, True]
    assert any("CertificateProblem" in each for each in kept.told())
    with pytest.raises(Forbidden):
        kept.work()
    assert kept.told() == [], "each problem is told once"


def test_certificates_of_somebody_else() -> None:
    """Their Secret is not written; what is wrong with them is told."""
    kept = Kept("external")
    assert kept.work() == []
    assert metric("_problems") != 0
    own = Kept()
    own.rest()
    kept.api.keep(CERTIFICATE_SECRETS, own.api.find(CERTIFICATE_SECRETS, "certs", "n"))
    for kind in CONFIGURATIONS:
        kept.api.keep(kind, own.api.find(kind, names.WEBHOOKS))
    assert (kept.work(), metric("_problems")) == ([], 0)
    assert kept.work(400 * DAY_S) == []
    assert any("CertificateProblem" in each for each in kept.told())


@pytest.mark.parametrize(("issuer", "said"), [("own", True), ("external", False)])
def test_a_secret_of_another_issuer(issuer: str, *, said: bool) -> None:
    """It is a mistake of the settings, if these say that the controller issues; it is not written."""
    kept = Kept(issuer)
    kept.show()
    kept.api.add(CERTIFICATE_SECRETS, {"metadata": {"name": "certs", "namespace": "n"}, "data": {"tls.crt": "eA=="}})
    assert kept.work() == []
    assert any("belongs to another issuer" in each for each in kept.told()) is said


def provide(kept: Kept) -> None:
    """Somebody else's Secret, as of cert-manager: a certificate for the webhook, and its authority."""
    authority = Authority.create(f"for {kept.secret}")
    pair = authority.issue("webhook", dns_names=sorted(WEBHOOK.names), server=True)
    found = {"tls.crt": pair.cert_pem, "tls.key": pair.key_pem, "ca.crt": authority.cert_pem}
    data = {name: b64encode(each).decode() for name, each in found.items()}
    kept.api.add(CERTIFICATE_SECRETS, {"metadata": {"name": kept.secret, "namespace": "n"}, "data": data})


def accepted(kept: Kept, leaf: Certificate) -> bool:
    """Whether every API server accepts a replica that shows this certificate."""
    return all(any(leaf.signed_by(each) for each in bundle) for bundle in kept.bundles())


@pytest.mark.parametrize("ahead", [False, True], ids=["at the change", "named before"])
@pytest.mark.parametrize(("before", "after"), [*itertools.permutations(["own", "certManager", "provided"], 2)])
def test_a_change_of_the_issuer_refuses_nothing(before: str, after: str, *, ahead: bool) -> None:
    """The former replicas are trusted until all are replaced, and the next ones as soon as their Secret is there.

    What the values name is trusted before the change, too.
    """
    first = Kept("own" if before == "own" else "external", wanted=(WEBHOOK,))
    if before != "own":
        provide(first)
    first.rest()
    assert accepted(first, first.leaf)
    second = Kept("own" if after == "own" else "external", after=first, wanted=(WEBHOOK,))
    if after != "own":
        provide(second)
        authority = read_bundle(second.data["ca.crt"])
        if ahead:
            named = Kept("own" if before == "own" else "external", wanted=(WEBHOOK,), after=first, trusted=authority)
            named.secret = first.secret
            named.keeper._options = replace(named.keeper._options, secret=first.secret)
            named.work()
            assert accepted(named, second.leaf)
    for _ in range(6):
        second.work(10.0)
        assert accepted(second, first.leaf)
    assert accepted(second, second.leaf)
    second.work(10.0)
    second.work(TERMS.load_wait_s + 10.0)
    second.rest()
    assert accepted(second, second.leaf)
    assert not accepted(second, first.leaf), "nobody shows it any more"


def test_the_first_certificates() -> None:
    """Any replica makes the Secret, where there is none and its caches are filled; nobody's own is replaced."""
    for issuer, made in (("own", ["certs"]), ("external", [])):
        kept = Kept(issuer)
        kept.show()
        kept.keeper.make_first()
        assert [each.metadata.name for each in kept.api.all(CERTIFICATE_SECRETS)] == made
        assert kept.bundles() == [(), (), (), ()]
    kept = Kept()
    kept.rest()
    before = kept.data
    kept.keeper.make_first()
    assert kept.data == before


def test_first_certificates_that_are_refused_are_left_to_the_leader() -> None:
    """The process starts all the same; so it does while its caches are not filled."""
    kept = Kept()
    kept.api.fails(Forbidden("no right to it"), "create")
    kept.show()
    with capture_logs() as logs:
        kept.keeper.make_first()
    assert [each["event"] for each in logs] == ["the leader creates the first certificates"]
    kept = Kept()
    for reflector in kept.keeper.reflectors.values():
        cast("Any", reflector).wait_synced = lambda seconds: seconds > 5.0
    kept.keeper.make_first()
    assert kept.api.all(CERTIFICATE_SECRETS) == []


def test_a_keeper_starts_its_caches_leads_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """It works while it may; the worker ends before the caches that it reads."""
    kept, calls = Kept(), list[str]()
    keeper = kept.keeper
    for name, part in {"events": keeper._recorder, "worker": keeper.worker, **keeper.reflectors}.items():
        for verb in ("start", "stop"):
            monkeypatch.setattr(part, verb, lambda name=name, verb=verb: calls.append(f"{verb} {name}"))
    keeper.start()
    keeper.lead(lambda: False)
    assert not keeper.worker.may_act()
    assert keeper.worker.queue.get(0) == "certificates"
    keeper.stop()
    caches = [*keeper.reflectors]
    assert caches == ["secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    assert calls == [
        *("start events", *(f"start {name}" for name in caches), "start worker"),
        *("stop worker", *(f"stop {name}" for name in caches), "stop events"),
    ]


def test_another_write_at_the_same_time_is_no_problem() -> None:
    """The caches are behind, and nothing is told of what they have."""
    kept = Kept()
    kept.work()
    kept.told()
    kept.api.fails(Conflict("it has changed"), "strategic_patch")
    with pytest.raises(Conflict):
        kept.work()
    assert kept.told() == []


def test_an_authority_that_is_not_trusted_any_more_is_told_of() -> None:
    """By its name."""
    step = Drop((Pair.from_pair(Authority.create("old").pair).certificate,))
    assert event_of(step, Content()) == (
        "Normal",
        "AuthorityDropped",
        "old: no replica uses a certificate that this authority signed",
    )


def test_caches_that_are_not_filled() -> None:
    """The pass is tried again: it would make another Secret."""
    kept = Kept()
    with pytest.raises(Retry, match="3 of 3 caches are not in sync"):
        kept.keeper.process("certificates")
    assert kept.api.sent == []


def test_a_secret_that_is_there_by_now() -> None:
    """Another controller's is not replaced."""
    kept = Kept()
    kept.show()
    kept.api.add(CERTIFICATE_SECRETS, {"metadata": {"name": "certs", "namespace": "n"}, "data": {}})
    with pytest.raises(Exception, match="another controller has created the Secret certs"):
        kept.keeper.process("certificates")


def test_a_rotation_that_is_refused() -> None:
    """Is told with its reason."""
    assert event_of(Refuse("nobody asks so"), Content()) == ("Warning", "RotationRefused", "nobody asks so")
