"""Certificates change in an order in which, at every moment, everybody trusts what everybody shows."""

from typing import Any

import pytest
from certificates_world import DAY_S, REPORTS, WEBHOOK, World, settled
from hypothesis import given, settings
from hypothesis import strategies as st

from certs.certificate import read_bundle
from certs.rotation import Drop, Issue, NewAuthority, Refuse, Situation, next_pass_s
from muster.api import names


def kinds(world: World) -> list[type]:
    """The kinds of the steps taken since this was last asked."""
    steps, world.steps = world.steps, []
    return [type(step) for step in steps]


@pytest.fixture
def world() -> World:
    """A cluster with certificates that everybody has taken up."""
    one = settled()
    kinds(one)
    return one


def signer(world: World) -> str:
    """Who signs."""
    assert world.content
    assert world.content.issuer
    return world.content.issuer.certificate.subject


def test_an_empty_cluster_has_all_in_one_write() -> None:
    """Nobody trusts anything yet, so there is nobody to wait for."""
    world = World()
    world.turn(writes=1)
    assert kinds(world) == [NewAuthority, Issue]
    assert world.content
    assert world.content.coming is None
    assert world.content.leaves["tls"].certificate.names == WEBHOOK.names
    world.turn()
    assert [read_bundle(bundle.now) for bundle in world.bundles] == [world.content.trusted] * 2
    assert not world.broken(at_s=world.now_s)


def test_at_rest_nothing_is_written(world: World) -> None:
    """Passes come and go; the next one is in ten minutes at the latest, as clocks may jump."""
    before = (world.data, [len(bundle.history) for bundle in world.bundles])
    assert 0 < world.turn() <= 600
    assert before == (world.data, [len(bundle.history) for bundle in world.bundles])


def test_a_certificate_is_renewed_at_two_thirds_of_its_life(world: World) -> None:
    """By the same authority, and not a minute earlier."""
    authority = signer(world)
    world.now_s += 60 * DAY_S - 3600
    world.turn()
    assert not kinds(world)
    world.now_s += 3600
    world.settle()
    assert kinds(world) == [Issue]
    assert signer(world) == authority
    assert not world.broken(at_s=world.now_s)


def test_an_authority_changes_in_three_steps(world: World) -> None:
    """It is trusted, then it signs, then the old one goes, once every replica has had time to load the new ones."""
    old = signer(world)
    world.live(243)
    assert kinds(world) == [Issue] * 4  # a certificate every sixty days
    world.now_s += DAY_S
    world.turn()
    assert kinds(world) == [NewAuthority]
    assert signer(world) == old
    world.now_s += world.terms.trust_wait_s + 1
    for _ in range(3):
        world.turn()
        world.now_s += world.terms.trust_wait_s + 1
    assert kinds(world) == [Issue]
    assert signer(world) != old
    assert world.content
    assert [each.subject for each in world.content.trusted] == [signer(world), old]
    world.settle()
    assert kinds(world) == [Drop]
    assert [[each.subject for each in read_bundle(bundle.now)] for bundle in world.bundles] == [[signer(world)]] * 2


def test_frequent_passes_shorten_no_wait(world: World) -> None:
    """With a pass each second, too, each step comes only once nobody can go by what was there before."""
    world.annotations[names.ROTATE] = "authority"
    for _ in range(700):
        world.turn()
        world.now_s += 1
    assert kinds(world) == [NewAuthority, Issue, Drop]


@pytest.mark.parametrize(("request_", "steps"), [("serving", [Issue]), ("authority", [NewAuthority, Issue, Drop])])
def test_what_a_user_asks_for(world: World, request_: str, steps: list[Any]) -> None:
    """It is done once, whatever becomes of the process meanwhile, and the request is gone."""
    world.annotations[names.ROTATE] = request_
    for _ in range(3):
        world.turn()
        world.restart()
        assert not world.broken(at_s=world.now_s)
    world.settle()
    assert kinds(world) == steps
    assert world.content
    assert not world.content.request
    assert [len(read_bundle(bundle.now)) for bundle in world.bundles] == [1, 1]


def test_what_cannot_be_asked_for_is_refused(world: World) -> None:
    """The refusal says what there is, and the request goes."""
    world.annotations[names.ROTATE] = "everything"
    world.turn()
    [step] = world.steps
    assert isinstance(step, Refuse)
    assert "valid requests are serving, authority" in step.why
    assert names.ROTATE not in world.annotations


def test_authorities_do_not_pile_up(world: World) -> None:
    """However often a new one is asked for: the old ones go when no replica shows what they signed."""
    for _ in range(4):
        world.annotations[names.ROTATE] = "authority"
        world.settle()
        assert not world.broken(at_s=world.now_s)
    assert world.content
    assert len(world.content.trusted) == 1


def test_a_deleted_secret_breaks_nothing(world: World) -> None:
    """The caBundles say who was trusted; a certificate comes when all of them have the new authority."""
    old = signer(world)
    world.data = None
    for _ in range(2):
        world.turn()
    assert world.content
    assert not world.content.leaves
    for bundle in world.bundles:
        assert [each.subject for each in read_bundle(bundle.now)][1:] == [old]
    world.settle()
    assert kinds(world) == [NewAuthority, Issue]
    assert [len(read_bundle(bundle.now)) for bundle in world.bundles] == [1, 1]


def test_what_somebody_else_keeps_is_left_alone(world: World) -> None:
    """Another issuer's Secret: neither it nor a caBundle is written, whatever is due or asked for."""
    world.labels = {}
    world.annotations[names.ROTATE] = "authority"
    world.now_s += 1000 * DAY_S
    before = (world.data, [bundle.now for bundle in world.bundles])
    world.turn()
    assert before == (world.data, [bundle.now for bundle in world.bundles])


def test_other_names_need_another_certificate(world: World) -> None:
    """When the Service is called otherwise, no authority has to change."""
    other = WEBHOOK.__class__(name="tls", common_name="x", names=frozenset({"other.svc", "10.0.0.1"}))
    world.wanted = (other,)
    world.turn()
    assert kinds(world) == [Issue]
    assert world.content
    assert world.content.leaves["tls"].certificate.names == other.names


def test_certificates_of_all_servers_change_together() -> None:
    """The authority of the webhook signs for the status server of TrainJobs, too: one more name in the Secret."""
    world = World(wanted=(WEBHOOK, REPORTS))
    world.settle()
    world.annotations[names.ROTATE] = "authority"
    world.settle()
    assert world.content
    assert {name: pair.certificate.subject for name, pair in world.content.leaves.items()} == {
        "tls": "muster-webhook",
        "reports": "muster-reports",
    }
    assert not world.broken(at_s=world.now_s)


def test_a_caBundle_that_was_emptied_is_filled(world: World) -> None:  # noqa: N802 - the field's name
    """Somebody applied a manifest without it."""
    world.bundles[0].write(world.now_s, b"")
    world.turn()
    assert world.bundles[0].now == world.bundles[1].now != b""


def test_a_certificate_of_somebody_else_is_trusted_until_nobody_shows_it() -> None:
    """As when Muster was run with a certificate made by hand before: nothing fails on the way."""
    before = settled()
    world = World()
    world.in_use = True
    for bundle, old in zip(world.bundles, before.bundles, strict=True):
        bundle.write(world.now_s - 1000, old.now)
    world.shown["tls"].write(world.now_s - 1000, before.shown["tls"].now)
    while not world.content or read_bundle(world.bundles[0].now) != world.content.trusted:
        world.now_s += world.turn() / 2 + 0.1
        assert not world.broken(at_s=world.now_s)
    assert kinds(world) == [NewAuthority, Issue]


def test_an_authority_whose_bundles_cannot_be_written_does_not_hold_up_renewals(
    world: World,
) -> None:
    """The old authority signs on as long as only it is trusted."""
    old = signer(world)
    stuck = [bundle.now for bundle in world.bundles]
    for _ in range(340):
        world.now_s += DAY_S
        for _ in range(3):
            world.turn()
            for bundle, content in zip(world.bundles, stuck, strict=True):
                bundle.history = [(0.0, content)]
    assert world.content
    assert world.content.coming
    assert signer(world) == old
    assert not world.broken(at_s=world.now_s)


def test_the_next_pass_is_when_something_may_be_due(world: World) -> None:
    """When a certificate is to be renewed, an authority has ended, or others have taken up a change."""
    content = world.content
    assert content
    assert content.issuer
    authority, leaf = content.issuer.certificate, content.leaves["tls"].certificate

    def waits(now_s: float, trusted_s: float = 1e6, loaded_s: float = 1e6) -> float:
        at = Situation(
            now_s=now_s, terms=world.terms, wanted=world.wanted,
            trusted_s={authority.fingerprint: trusted_s}, loaded_s={leaf.fingerprint: loaded_s},
        )  # fmt: skip
        return next_pass_s(content, at)

    assert waits(leaf.due_s - 600.5) == 600.0
    assert waits(leaf.due_s - 5.0) == 5.0
    assert waits(authority.due_s - 7.0) == 7.0
    assert waits(authority.ends_s - 5.0) == 6.0
    assert waits(authority.ends_s + 1.0) == 600.0
    assert waits(leaf.due_s + 1.0, trusted_s=world.terms.trust_wait_s - 3.0) == 3.0
    assert waits(leaf.due_s + 1.0, loaded_s=world.terms.load_wait_s - 0.01) == 0.1
    assert waits(leaf.due_s + 1.0, trusted_s=world.terms.trust_wait_s, loaded_s=world.terms.load_wait_s) == 600.0
    assert next_pass_s(None, Situation(now_s=0.0, terms=world.terms, wanted=world.wanted)) == 600.0


# What can happen, in any order: each is one call.
ACTIONS = st.one_of(
    st.tuples(st.just("pass"), st.sampled_from([0, 1, 2, 1000])),
    st.tuples(st.just("passes"), st.sampled_from([1.0, 16.0, 31.0, 305.0])),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 10.0, 31.0, 300.0, 601.0, 3600.0, 30 * DAY_S, 100 * DAY_S])),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("jump"), st.sampled_from([0.0, -DAY_S, DAY_S, 400 * DAY_S, -4000 * DAY_S])),
    st.tuples(st.just("delete"), st.none()),
    st.tuples(st.just("ask"), st.sampled_from(["serving", "authority", "nonsense"])),
    st.tuples(
        st.just("spoil"), st.sampled_from(["tls.crt", "tls.key", "issuer.crt", "issuer.key", "next.key", "ca.crt"])
    ),
)


def act(world: World, what: str, argument: Any) -> None:
    """One thing that happens."""
    match what:
        case "pass":
            world.turn(argument)
        case "passes":
            for _ in range(5):
                world.turn()
                world.now_s += argument
        case "wait":
            world.now_s += argument
        case "restart":
            world.restart()
        case "jump":
            world.offset_s = argument
        case "delete":
            world.data, world.annotations = None, {}
        case "ask" if world.data is not None:
            world.annotations[names.ROTATE] = argument
        case "spoil" if world.data is not None:
            world.data[argument] = b"spoilt"


@given(st.lists(ACTIONS, min_size=5, max_size=40))
def test_at_every_moment_everybody_trusts_what_everybody_shows(actions: list[tuple[str, Any]]) -> None:
    """Whatever happens in whatever order: crashes between two writes, clocks that jump, a Secret deleted or spoilt."""
    world = settled()
    for what, argument in actions:
        act(world, what, argument)  # each pass looks
        assert not world.broken()


@settings(max_examples=settings().max_examples // 10)  # a year takes 150 passes
@given(st.lists(st.tuples(st.sampled_from([-DAY_S, 0.0, DAY_S]), st.booleans()), min_size=37, max_size=40))
def test_nothing_expires_while_clocks_jump_by_a_day(days: list[tuple[float, bool]]) -> None:
    """Over more than a year: what is shown is valid for the right clock, and for one that is a day off."""
    world = settled()
    for offset_s, restarted in days:
        world.now_s += 10 * DAY_S
        world.offset_s = offset_s
        if restarted:
            world.restart()
        for _ in range(4):
            world.now_s += min(world.turn(), 700)
            for error_s in (-DAY_S, 0.0, DAY_S):
                assert not world.broken(at_s=world.now_s + error_s)


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(ACTIONS, min_size=5, max_size=20))
def test_it_always_comes_to_rest_with_valid_certificates(actions: list[tuple[str, Any]]) -> None:
    """Once the clock is right and nobody interferes, all that is wanted is there, valid, trusted, and of the issuer."""
    world = World()
    for what, argument in actions:
        act(world, what, argument)
    world.offset_s = 0.0
    world.settle()
    content = world.content
    assert content
    assert content.issuer
    assert content.coming is None
    assert not content.faults
    [leaf] = [pair.certificate for pair in content.leaves.values()]
    assert leaf.signed_by(content.issuer.certificate)
    assert leaf.valid_at(world.now_s)
    assert {read_bundle(bundle.now) for bundle in world.bundles} == {content.trusted}
    assert not world.broken(at_s=world.now_s)
