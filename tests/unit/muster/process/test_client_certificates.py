"""A server that is given an authority for clients answers nobody without a certificate of it."""

import ssl
from pathlib import Path

import pytest

from certs.authority import Authority
from muster.process.tls import TLSContext

OURS, OTHERS = Authority.create("ours"), Authority.create("others")


def server(folder: Path, *, asks: bool) -> ssl.SSLContext:
    """The context of a server."""
    OURS.issue("server", dns_names=["server"], server=True).save(folder)
    OURS.save(folder)
    return TLSContext(folder / "tls.crt", folder / "tls.key", folder / "ca.crt" if asks else None).get()


def client(folder: Path, authority: Authority | None) -> ssl.SSLContext:
    """The context of a client with a certificate of this authority, or with none."""
    context = ssl.create_default_context(cadata=OURS.cert_pem.decode())
    if authority:
        authority.issue("kube-apiserver", client=True).save(folder, "client")
        context.load_cert_chain(folder / "client.crt", folder / "client.key")
    return context


def meet(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """A handshake of the two in memory, and one byte; raises ssl.SSLError if they do not come together."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    client_end = client.wrap_bio(to_client, to_server, server_hostname="server")
    for _ in range(4):
        for end in (client_end, server_end):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    client_end.write(b"x")
    assert server_end.read(1) == b"x"


def test_without_an_authority_everybody_is_answered(tmp_path: Path) -> None:
    """The default, as an API server has no certificate for webhooks unless it is given one."""
    meet(server(tmp_path, asks=False), client(tmp_path, None))


def test_with_an_authority_only_those_of_it(tmp_path: Path) -> None:
    """No certificate, or one of somebody else's authority, ends the handshake."""
    asking = server(tmp_path, asks=True)
    meet(asking, client(tmp_path, OURS))
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        meet(asking, client(tmp_path, None))
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        meet(asking, client(tmp_path, OTHERS))
