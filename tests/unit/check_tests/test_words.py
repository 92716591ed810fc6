"""What is read in the output of a step."""

from check.words import NOTHING, lacking, packages, skipped


def test_what_is_missing() -> None:
    """Only the one line counts that a target ends with."""
    reason = "real nodes need runc: on Debian, `apt-get install containerd g++ libstdc++6-12.2`"
    assert lacking(f"collected 3 items\n{NOTHING}{reason}\n3 skipped\n") == reason
    assert lacking(f"it said {NOTHING}{reason}\n1 failed\n") == ""
    assert packages(reason) == ["containerd", "g++", "libstdc++6-12.2"]
    assert packages("real nodes need root") == []


def test_what_was_skipped() -> None:
    """By reason, as in pytest's short summary."""
    log = "SKIPPED [2] a.py:7: no engine\nPASSED x\nSKIPPED [1] b.py:9: no engine\nSKIPPED [1] a.py:1: no ssh\n"
    assert skipped(log) == {"no engine": 3, "no ssh": 1}
