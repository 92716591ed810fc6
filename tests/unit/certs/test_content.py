"""The Secret: what is written is read again, what is broken is said, and no key is ever shown."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from certificates_world import WEBHOOK, World
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs.authority import Authority
from certs.certificate import Pair, UnreadableError, read_bundle
from certs.content import Content, annotations_of, data_of, problems, read
from muster.api import names
from muster.api.kubernetes.extensions import CertificateSecret

OURS = {names.MANAGED_BY: names.MANAGER}


@pytest.fixture(scope="module")
def content() -> Content:
    """A Secret's content, in the middle of a change of authorities."""
    world = World()
    world.settle()
    world.annotations[names.ROTATE] = "authority"
    world.turn()
    found = world.content
    assert found
    assert found.coming
    return found


def data(content: Content) -> dict[str, bytes]:
    """The data of the Secret."""
    return {name: value for name, value in data_of(content).items() if value is not None}


def test_what_is_written_is_read_again(content: Content) -> None:
    """Data and annotations hold all of it."""
    annotations = {name: value for name, value in annotations_of(content).items() if value}
    assert read(data(content), OURS, annotations, ("tls",)) == content


def test_keys_have_names_that_others_know(content: Content) -> None:
    """tls.crt, tls.key and ca.crt, as in the Secrets of cert-manager."""
    assert set(data(content)) == {
        *("ca.crt", "tls.crt", "tls.key"),
        *("issuer.crt", "issuer.key", "next.crt", "next.key"),
    }


@pytest.mark.parametrize(("name", "value", "said"), [
    ("tls.key", b"nonsense", "tls.crt: its key is not a private key (PEM, not encrypted)"),
    ("tls.crt", b"nonsense", "tls.crt: it is not a certificate (PEM)"),
    ("issuer.key", Authority.create("x").pair.key_pem, "issuer.crt: its key belongs to another certificate"),
])  # fmt: skip
def test_what_is_broken_counts_as_missing(content: Content, name: str, value: bytes, said: str) -> None:
    """And it is said what it is, without any of it."""
    found = read({**data(content), name: value}, OURS, {}, ("tls",))
    assert found.faults == (said,)
    assert (found.issuer is None) == name.startswith("issuer")
    assert (found.leaves == {}) == name.startswith("tls")
    assert found.trusted


@pytest.mark.parametrize(
    ("data", "labels", "ours"), [({}, {}, True), ({"tls.crt": b"x"}, {}, False), ({"tls.crt": b"x"}, OURS, True)]
)
def test_whose_a_secret_is(data: dict[str, bytes], labels: dict[str, str], ours: bool) -> None:  # noqa: FBT001 - a column
    """Ours is what bears our label, and what holds nothing."""
    assert read(data, labels, {}, ("tls",)).ours == ours


def test_nothing_that_is_printed_shows_a_key(content: Content) -> None:
    """Contents, pairs, the object, and the error about a key that does not fit."""
    secret = CertificateSecret(data=data(content))
    assert content.issuer
    with pytest.raises(UnreadableError) as error:
        Pair.read(content.issuer.certificate.pem, data(content)["tls.key"])
    shown = "".join(map(repr, (content, content.issuer, secret, error.value, error.value.__cause__)))
    keys = [value.decode() for name, value in data(content).items() if name.endswith(".key")]
    assert len(keys) == 3
    assert not [line for key in keys for line in key.splitlines() if line in shown]


def test_a_bundle_with_other_text_in_it_is_read(content: Content) -> None:
    """As `openssl` writes it; what cannot be read is left out, and what is there twice counts once."""
    [first, *_] = content.trusted
    text = (
        b"subject=x\n"
        + first.pem
        + b"\n"
        + first.pem
        + b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    )
    assert read_bundle(text) == (first,)


def test_problems(content: Content) -> None:
    """Each is a sentence that says where it is."""
    [leaf] = [pair.certificate for pair in content.leaves.values()]
    bundles = {"MutatingWebhookConfiguration muster": [content.trusted, ()]}

    def said(found: Content | None, now_s: float, *, managed: bool = True) -> str:
        return "; ".join(problems(found, bundles, now_s=now_s, leaves=("tls",), managed=managed))

    distrust = "1 of 2 webhooks of MutatingWebhookConfiguration muster do not trust the certificate in the Secret"
    assert said(content, leaf.due_s) == distrust
    assert said(None, 0) == "the Secret does not exist"
    assert "tls.crt should have been renewed: it expires on 2027-" in said(content, leaf.due_s + 9 * 86400)
    assert "tls.crt has expired on 2027-" in said(content, leaf.ends_s + 1)
    assert "tls.crt is not valid before 2027-" in said(content, leaf.begins_s - 1)
    assert said(replace(content, leaves={}), leaf.due_s) == "there is no certificate tls.crt with its key"
    assert "certIssuer: external" in said(replace(content, ours=False), leaf.due_s)
    assert said(replace(content, ours=False), leaf.due_s, managed=False) == distrust


def test_a_certificate_that_is_trusted_itself_is_no_problem() -> None:
    """It needs no authority: a self-signed one that stands in the caBundle, as another issuer may make it."""
    pair = signed("alone", None)
    found = Content(leaves={"tls": pair}, ours=False)
    assert not problems(found, {"webhooks": [(pair.certificate,)]}, now_s=NOW_S, leaves=("tls",), managed=False)


def test_a_certificate_below_an_authority_that_is_shown_with_it_is_no_problem() -> None:
    """The caBundle has the root; the one between stands in tls.crt, as cert-manager writes it."""
    root = signed("root", None)
    between = signed("between", root)
    leaf = signed("leaf", between)
    chain = Pair.read(leaf.certificate.pem + between.certificate.pem, leaf.key_pem)
    trusting = {"webhooks": [(root.certificate,)]}
    for pair, count in ((chain, 0), (leaf, 1)):
        found = Content(leaves={"tls": pair}, ours=False)
        assert len(problems(found, trusting, now_s=NOW_S, leaves=("tls",), managed=False)) == count


NOW_S = datetime(2026, 11, 25, tzinfo=UTC).timestamp()


def signed(name: str, by: Pair | None) -> Pair:
    """A certificate of a year, of another one or of itself; only a signer of others is an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = serialization.load_pem_private_key(by.key_pem, None) if by else key
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.parsed.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2026, 11, 1, tzinfo=UTC))
        .not_valid_after(datetime(2027, 11, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=name in {"root", "between"}, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair.read(made.public_bytes(serialization.Encoding.PEM), text)


def test_only_an_authority_vouches_for_others() -> None:
    """The key of a server could sign, too, but its certificate says that it may not."""
    authority = Authority.create("ca")
    server = authority.issue("server", server=True)
    forged = Authority(server).issue("forged", server=True)
    assert Pair.from_pair(server).certificate.signed_by(Pair.from_pair(authority.pair).certificate)
    assert not Pair.from_pair(forged).certificate.signed_by(Pair.from_pair(server).certificate)


def test_names_of_the_webhook_stand_in_its_certificate(content: Content) -> None:
    """And nothing else."""
    assert content.leaves["tls"].certificate.names == WEBHOOK.names
