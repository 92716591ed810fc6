"""A cluster's certificates without a cluster: the Secret, caBundles, and what API servers and replicas make of them.

Nobody is as slow as here. An API server may go by any caBundle that was written within the last `trust_wait_s`, and a
replica may show any certificate that stood in the Secret within the last `load_wait_s`, or the last one that did.
`broken` names every pair of such a caBundle and such a certificate that do not go together.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, lru_cache

from certs.certificate import Certificate, read_bundle, write_bundle
from certs.content import Content, annotations_of, data_of, read
from certs.issuing import all_steps
from certs.rotation import Since, Situation, Step, Terms, WantedCertificate, bundle_for, next_pass_s
from muster.api import names

DAY_S = 86400.0
_bundle = lru_cache(maxsize=256)(read_bundle)
_certificate = lru_cache(maxsize=256)(Certificate.read)
TERMS = Terms(authority_life_s=365 * DAY_S, life_s=90 * DAY_S, trust_wait_s=30, load_wait_s=600)
WEBHOOK = WantedCertificate(
    name="tls", common_name="muster-webhook", names=frozenset({"muster-webhook.muster-system.svc"})
)
REPORTS = WantedCertificate(
    name="reports", common_name="muster-reports", names=frozenset({"muster-reports.muster-system.svc"})
)


@lru_cache(maxsize=256)
def _content(
    data: tuple[tuple[str, bytes], ...],
    labels: tuple[tuple[str, str], ...],
    annotations: tuple[tuple[str, str], ...],
    leaves: tuple[str, ...],
) -> Content:
    """Read a Secret once: a pass that writes nothing leaves it to the next one as it is."""
    return read(dict(data), dict(labels), dict(annotations), leaves)


@dataclass
class Written:
    """What was written to one place, and when: the last one counts, those before it for a while."""

    wait_s: float
    history: list[tuple[float, bytes]] = field(default_factory=list)

    @property
    def now(self) -> bytes:
        """What stands there."""
        return self.history[-1][1] if self.history else b""

    def write(self, at_s: float, content: bytes) -> None:
        """Writes it; what nobody goes by any more is forgotten."""
        following = [written_s for written_s, _ in self.history[1:]]
        over = sum(replaced_s + self.wait_s <= at_s for replaced_s in following)
        self.history = [*self.history[over:], (at_s, content)]

    def in_effect(self, at_s: float) -> Iterator[bytes]:
        """Everything by which somebody may go at that time."""
        following = [*(written_s for written_s, _ in self.history[1:]), float("inf")]
        for (_, content), replaced_s in zip(self.history, following, strict=bool(self.history)):
            if content and at_s < replaced_s + self.wait_s:
                yield content


class World:
    """`webhooks` webhook configurations and one Secret; time passes only where it is told to."""

    def __init__(
        self, terms: Terms = TERMS, wanted: tuple[WantedCertificate, ...] = (WEBHOOK,), webhooks: int = 2
    ) -> None:
        self.terms, self.wanted = terms, wanted
        self.now_s = 1_800_000_000.0
        """As it is, and as monotonic clocks count."""
        self.offset_s = 0.0
        """By how much the clock of the API server is wrong."""
        self.data: dict[str, bytes] | None = None
        self.annotations: dict[str, str] = {}
        self.labels = {names.MANAGED_BY: names.MANAGER}
        self.bundles = [Written(terms.trust_wait_s) for _ in range(webhooks)]
        self.shown = {each.name: Written(terms.load_wait_s) for each in wanted}
        self.steps: list[Step] = []
        self.in_use = False
        """Whether somebody relies on it: once all is there for the first time. From then on each pass is checked."""
        self.restart()

    def restart(self) -> None:
        """Another process leads from now on: it remembers nothing."""
        self._trusted, self._loaded = Since(), Since()

    @property
    def content(self) -> Content | None:
        """The Secret, read."""
        if self.data is None:
            return None
        wanted = tuple(each.name for each in self.wanted)
        return _content(tuple(self.data.items()), tuple(self.labels.items()), tuple(self.annotations.items()), wanted)

    @property
    def clock_s(self) -> float:
        """What the API server's clock says."""
        return self.now_s + self.offset_s

    def seen(self) -> Situation:
        """What the process that leads has seen."""
        held = [{each.fingerprint for each in _bundle(bundle.now)} for bundle in self.bundles]
        leaves = [pair.certificate.fingerprint for pair in (self.content or Content()).leaves.values()]
        return Situation(
            now_s=self.clock_s, terms=self.terms, wanted=self.wanted,
            trusted_s=self._trusted.update(set.intersection(*held), self.now_s),
            loaded_s=self._loaded.update(leaves, self.now_s),
        )  # fmt: skip

    def turn(self, writes: int = 1000) -> float:
        """One pass of the process, which dies after so many writes; gives after how long it wants to look again."""
        again_s = self._turn(writes)
        broken = self.broken()
        assert not (self.in_use and broken), broken
        return again_s

    def _turn(self, writes: int) -> float:
        content, seen = self.content, self.seen()
        for bundle in self.bundles if content else ():
            after = write_bundle(bundle_for(content, _bundle(bundle.now), seen))
            if after != bundle.now:
                if not writes:
                    return 0.0
                writes -= 1
                bundle.write(self.now_s, after)
        present_all = [_bundle(bundle.now) for bundle in self.bundles]
        new, steps = all_steps(content, present_all, seen)
        if new and steps and writes:
            self.steps += steps
            self._store(new)
            return 0.0
        return next_pass_s(content, seen)

    def _store(self, content: Content) -> None:
        self.data = {key: one for key, one in {**(self.data or {}), **data_of(content)}.items() if one is not None}
        self.annotations = {key: value for key, value in annotations_of(content).items() if value is not None}
        for name, written in self.shown.items():
            pair = content.leaves.get(name)  # a replica shows what it had if it cannot load what is there
            if pair and pair.certificate.pem != written.now:
                written.write(self.now_s, pair.certificate.pem)

    def live(self, days: int) -> None:
        """Lets days pass with a few passes in each."""
        for _ in range(days):
            self.now_s += DAY_S
            for _ in range(3):
                self.turn()

    def settle(self) -> None:
        """Lets time pass until nothing is written any more."""
        for _ in range(100):
            before = (self.data, self.annotations, [bundle.now for bundle in self.bundles])
            self.now_s += min(self.turn(), self.terms.load_wait_s)
            for _ in range(3):
                self.turn()
            if before == (self.data, self.annotations, [bundle.now for bundle in self.bundles]) and self._waited:
                self.in_use = True
                return
        raise AssertionError("it never comes to rest")

    @property
    def _waited(self) -> bool:
        content, seen = self.content or Content(), self.seen()
        return all(
            seen.loaded_s[pair.certificate.fingerprint] >= self.terms.load_wait_s for pair in content.leaves.values()
        )

    def broken(self, *, at_s: float | None = None) -> list[str]:
        """Which caBundles in effect do not verify which certificates in effect; with `at_s`, at that time, too."""
        bundles = {content for bundle in self.bundles for content in bundle.in_effect(self.now_s)}
        leaves = {content for written in self.shown.values() for content in written.in_effect(self.now_s)}
        return [
            f"{leaf} is not verified by {list(trusted)}"
            for trusted in map(_bundle, bundles)
            for leaf in map(_certificate, leaves)
            if not any(leaf.signed_by(each) and _valid(at_s, leaf, each) for each in trusted)
        ]


def _valid(at_s: float | None, *certificates: Certificate) -> bool:
    return at_s is None or all(each.valid_at(at_s) for each in certificates)


@cache
def _settled() -> World:
    """Make keys and certificates of a first start once; every world that begins with them is a copy."""
    world = World()
    world.settle()
    return world


def settled() -> World:
    """Return a cluster whose certificates are in use everywhere, with the steps that led there."""
    return deepcopy(_settled())
