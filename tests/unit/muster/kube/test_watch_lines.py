"""The stream of a watch is cut into lines, however the network cuts it into chunks."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from muster.kube.watch import LineCutter

texts = st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=10)


def cut(chunks: list[bytes]) -> list[bytes]:
    """The lines of a stream that comes in these chunks."""
    cutter = LineCutter()
    return [line for chunk in chunks for line in cutter.cut(chunk)]


@given(texts, st.lists(st.integers(0, 200)))
def test_chunks_do_not_matter(lines: list[bytes], cuts: list[int]) -> None:
    """Any cutting of the same bytes gives the same lines; empty ones are left out."""
    stream = b"".join(line + b"\n" for line in lines)
    ends = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[start:end] for start, end in pairwise(ends)]
    assert [line for line in lines if line] == cut(chunks)


def test_an_unfinished_line_is_no_line() -> None:
    """A stream that breaks in the middle of an event gives the whole ones only."""
    assert cut([b"a\nb", b"c\nunfi", b"nished"]) == [b"a", b"bc"]
