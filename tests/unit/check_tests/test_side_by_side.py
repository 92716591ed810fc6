"""Steps run side by side, are shown whole, and fail the run for what has no second chance."""

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from check.flaky import Flaky
from check.results import load
from check.running import MAX_SHOWN_LINES, Check
from check.steps import Step
from check.words import NOTHING

FAILS = """
folder=${PYTEST_ADDOPTS#-o cache_dir=}/v/cache
mkdir -p $folder && printf '{"tests/a.py::test_x": true}' > $folder/lastfailed && exit 1
"""
"""What pytest leaves behind when a test fails."""
LISTED = (Flaky("tests/a.py::test_x", dt.date(2026, 11, 28), "a race"),)


@pytest.fixture
def shown() -> list[str]:
    """What the check has shown."""
    return []


@pytest.fixture
def check(tmp_path: Path, shown: list[str]) -> Callable[..., Check]:
    """Makes a check in a folder of the test; `again` is a script in the place of pytest's second run."""

    def make(*listed: Flaky, again: str = "exit 0", unlisted: int = 0) -> Check:
        pytest_ = ("sh", "-c", again, "pytest")
        places = {"folder": tmp_path, "kept": tmp_path / "kept"}
        return Check("c0ffee", listed, **places, pytest=pytest_, show=shown.append, unlisted=unlisted)

    return make


def step(name: str, script: str, *, again: tuple[str, ...] | None = None) -> Step:
    """A step that is a script of the shell."""
    return Step(name, ("sh", "-c", script), again, {"NAME": name})


def test_parallel_steps_are_shown_one_by_one(check: Callable[..., Check], shown: list[str], tmp_path: Path) -> None:
    """Each waits for a line of the other, so neither could run alone."""
    for name in ("a", "b"):
        os.mkfifo(tmp_path / name)
    one, two = (
        step(mine, f"echo $NAME begins; cd {tmp_path}; {talk}; echo $NAME ends")
        for mine, talk in (("one", "echo > a; cat b"), ("two", "cat a; echo > b"))
    )
    made = check()
    made.side_by_side(lambda: made.run(one), lambda: made.run_all([two]))
    assert [each.outcome for each in made.results] == ["passed", "passed"]
    for name in ("one", "two"):
        [text] = [text for text in shown if f"{name} ends" in text]
        assert f"\n{name} begins\n" in text
        assert not any(f"{other} begins" in text for other in {"one", "two"} - {name})


def test_what_became_of_a_step_is_kept(check: Callable[..., Check], tmp_path: Path) -> None:
    """Also of one behind which others went on."""
    made = check()
    made.run_all([step("bad", "echo no; exit 3"), step("good", "exit 0")], behind=True)
    assert [(each.step, each.outcome, each.why) for each in made.results] == [
        ("bad", "failed", "exit code 3"),
        ("good", "passed", ""),
    ]
    assert load(tmp_path / "kept") == {each.step: each for each in made.results}
    assert (tmp_path / "bad.log").read_text().splitlines()[-1] == "no"


def test_a_listed_test_has_a_second_chance(check: Callable[..., Check], tmp_path: Path) -> None:
    """Its whole file runs again, with the options and the environment of its step."""
    result = check(*LISTED, again="echo again $NAME $@").run(step("test", FAILS, again=("-m", "long")))
    assert (result.outcome, result.why.partition(":")[0]) == ("passed again", "tests/a.py")
    assert (tmp_path / "test.log").read_text().splitlines()[-1] == "again test -m long tests/a.py"


@pytest.mark.parametrize(("listed", "unlisted", "again", "said", "outcome", "why"), [
    (LISTED, 0, "exit 1", "", "failed", "second chance"),
    ((), 0, "exit 0", "", "failed", "tests/a.py::test_x failed, and tests/flaky.toml does not list it"),
    ((), 1, "exit 0", "", "passed again", "mend it, or list it"),
    ((), 1, "exit 1", f"echo '{NOTHING}it needs a moon'\n", "failed", "second chance"),
], ids=["the second is the last", "others have none", "a few others have one", "prints what is missing"])  # fmt: skip
def test_second_chances(
    check: Callable[..., Check], listed: tuple[Flaky, ...], unlisted: int, again: str, said: str, outcome: str, why: str
) -> None:
    """A listed test has one, as have so many others; a failed test was tested, whatever its step prints is missing."""
    result = check(*listed, again=again, unlisted=unlisted).run(step("test", said + FAILS, again=()))
    assert (result.outcome, why in result.why) == (outcome, True)


def test_a_failure_of_before_is_forgotten(check: Callable[..., Check]) -> None:
    """The step of an earlier run left it behind; this time something else failed."""
    made = check(*LISTED)
    made.run(step("test", FAILS, again=()))
    assert made.run(step("test", "exit 2", again=())).why == "exit code 2"


def test_another_turn_stands_in(check: Callable[..., Check]) -> None:
    """For the first ones, which the machine cannot take; no further one runs."""
    made = check()
    missing = f"echo '{NOTHING}it needs a moon'; exit 2"
    made.one_of([step("moon", missing), step("sun", missing), step("earth", "exit 0"), step("mars", "exit 0")])
    assert [(each.step, each.outcome) for each in made.results] == [
        ("moon", "not here"),
        ("sun", "not here"),
        ("earth", "passed"),
    ]
    assert made.results[0].why == "it needs a moon"


def test_what_is_skipped_is_one_line(check: Callable[..., Check]) -> None:
    """With its number, its step and its reason."""
    made = check()
    assert made.skipped() == "skipped: none"
    made.run(step("test", "echo 'SKIPPED [2] tests/a.py:1: no engine'; echo 'SKIPPED [1] tests/b.py:1: no ssh'"))
    assert made.skipped() == "skipped: 2 of test: no engine; 1 of test: no ssh"


def test_a_check_that_is_ended(check: Callable[..., Check], tmp_path: Path, shown: list[str]) -> None:
    """What has been said so far is shown, and nothing more begins."""
    made = check()
    os.mkfifo(tmp_path / "fifo")
    waiting = step("waits", f"echo so far; cat {tmp_path}/fifo; cat {tmp_path}/fifo")

    def end() -> None:
        with (tmp_path / "fifo").open("w"):
            made.end()

    made.side_by_side(lambda: made.run_all([waiting, step("next", "exit 0")]), end)
    assert [(each.step, each.outcome, each.why) for each in made.results] == [("waits", "failed", "it was ended")]
    assert "so far" in shown[-1]


def test_a_step_whose_time_is_over(check: Callable[..., Check], tmp_path: Path) -> None:
    """It is asked to end, like a user's Ctrl-C does, and fails nothing."""
    os.mkfifo(tmp_path / "fifo")
    made = check()
    slow = replace(step("slow", f"trap 'echo tidied; exit 2' INT; read line <> {tmp_path}/fifo"), until_s=0.2)
    result = made.run(slow)
    assert (result.outcome, result.fails(always=[])) == ("out of time", False)
    assert (tmp_path / "slow.log").read_text().splitlines()[-1] == "tidied"


def test_a_second_chance_whose_time_is_over(check: Callable[..., Check], tmp_path: Path) -> None:
    """What might have passed the second time fails nothing."""
    os.mkfifo(tmp_path / "fifo")
    made = check(*LISTED, again=f"read line <> {tmp_path}/fifo")
    result = made.run(replace(step("test", FAILS, again=()), until_s=0.5))
    assert (result.outcome, result.fails(always=[])) == ("out of time", False)


def test_the_end_of_the_output_is_shown(check: Callable[..., Check], shown: list[str], tmp_path: Path) -> None:
    """A long log would hide the table; it stands in the folder as a whole."""
    check().run(step("long", f"seq {MAX_SHOWN_LINES + 7}"))
    lines = shown[-1].splitlines()
    assert lines[1] == f"… 8 lines before these are in {tmp_path}/long.log"  # and the command's
    assert lines[2:-1] == [str(number) for number in range(8, MAX_SHOWN_LINES + 8)]
    assert len((tmp_path / "long.log").read_text().splitlines()) == MAX_SHOWN_LINES + 8


def test_a_check_goes_on_without_a_reader(tmp_path: Path) -> None:
    """Its exit code is still waited for."""
    script = """
import sys
from pathlib import Path
sys.path.insert(0, ".ci")
from check.running import Check
from check.steps import Step
sys.stdin.read(1)
check = Check("c0ffee", (), folder=Path(sys.argv[1]), kept=Path(sys.argv[1], "kept"))
check.run_all([Step("one", ("true",)), Step("two", ("true",))])
sys.stderr.write(" ".join(each.outcome for each in check.results))
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    reader, writer = os.pipe()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    os.close(reader)
    assert process.communicate("x", timeout=30)[1].startswith("passed passed")


def test_a_shell_starts_it() -> None:
    """With its options, from any folder, and also where its first line is not looked at."""
    run = Path(__file__).parents[3] / ".ci" / "run"
    help_ = subprocess.run(["bash", run, "--help"], cwd="/", capture_output=True, text=True, timeout=30, check=True)
    assert help_.stdout.startswith("usage: .ci/run [-h] [--turns NAMES] [--checked]")
