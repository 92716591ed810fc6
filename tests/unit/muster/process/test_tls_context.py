"""A server's certificate: new files are taken up, and /metrics tells when what is shown ends."""

from datetime import timedelta
from pathlib import Path

from certs.authority import Authority
from muster.process.tls import TLSContext


def test_it_tells_when_what_it_shows_ends(tmp_path: Path) -> None:
    """Of new files too, before anybody has connected; files that cannot be read leave the old certificate."""
    authority = Authority.create("ca")
    authority.issue("server", server=True).save(tmp_path)
    context = TLSContext(tmp_path / "tls.crt", tmp_path / "tls.key")
    first_s = context.ends_s()
    authority.issue("server", server=True, life=timedelta(days=1)).save(tmp_path)
    later_s = context.ends_s()
    assert first_s - later_s > 300 * 86400
    (tmp_path / "tls.crt").write_text("nonsense")
    assert context.ends_s() == later_s
