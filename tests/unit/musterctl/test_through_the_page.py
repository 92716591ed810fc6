"""What commands ask the page in the cluster, and what they make of its answers."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from answering_server import FORBIDDEN, Server
from click.testing import CliRunner, Result
from explain_world import ExplainWorld

from extender.explain.find import explain as explain_in
from extender.explain.whatif import WhatIf
from history.answers import Coverage, Gangs
from history.read import GangEvent, GangHistory
from history.usage import Seconds, UsageRow
from musterctl.app import main

NOW = time.time()
GANG = GangHistory(
    uid="u", namespace="team", name="fit", kind="Job", queue="q", user="anne", submitted=NOW - 900, started=NOW - 600,
    ended=None, state="Running", restarts=0, evictions=0, nodes=("n0",), gpu_seconds=60.0,
)  # fmt: skip
PAIR = {"first": "Failed", "second": "Running"}
"""UIDs of two workloads of one name, and their states."""


def ok(body: Any) -> Any:
    """The answer of the page."""
    return (200, msgspec.to_builtins(body), [])


@pytest.fixture
def page(server: Server, tmp_path: Path) -> Any:
    """Runs a command of one with a token, who may list nothing; the page is at the address of the API server."""
    server.other = FORBIDDEN
    server.answers["GET /api/recorder"] = ok(Coverage(time.time()))
    file = tmp_path / "kubeconfig"
    content = yaml.safe_load(file.read_text())
    url = content["clusters"][0]["cluster"]["server"]

    def run(command: str, *, known: bool = True, url: str = url) -> Result:
        content["users"][0]["user"] = {"token": "t"} if known else {}
        file.write_text(yaml.safe_dump(content))
        return CliRunner().invoke(main, [*command.split(), f"--kubeconfig={file}", f"--server={url}"])

    return run


def test_gangs_of_the_history(page: Any, server: Server) -> None:
    """What is asked is in the query, and nothing that is not."""
    server.answers["GET /api/history"] = ok(Gangs([GANG]))
    result = page("history -n team --queue q")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split()[:3] for line in result.stdout.splitlines()] == [["NAME", "QUEUE", "USER"], ["Job", "fit", "q"]]
    asked = next(each for each in server.requests if "/api/history" in each)
    assert sorted(part.partition("=")[0] for part in asked.partition("?")[2].split("&")) == [
        "limit", "namespace", "queue", "since",
    ]  # fmt: skip
    assert "namespace=team" in asked
    page("ps --ended -A")
    assert "ended=true" in server.requests[-1] + server.requests[-2]


def test_a_story_of_the_history(page: Any, server: Server) -> None:
    """Of the workload of this name, in whatever way it is written."""
    told = [GangEvent(at=NOW, epoch=0, what="submitted", text="by anne", nodes=())]
    server.answers["GET /api/history/team/fit"] = ok(told)
    assert "by anne" in page("history job.batch/fit -n team").stdout


def test_workloads_of_one_name_are_told_apart(page: Any, server: Server) -> None:
    """Each under its kind, creator, submission and state; gangs before `--since` are left out."""
    gangs = [msgspec.structs.replace(GANG, uid=f"team/{uid}/g", state=state) for uid, state in PAIR.items()]
    events = [
        GangEvent(at=at, epoch=0, what="submitted", text=f"of {uid}", nodes=(), gang=f"team/{uid}/g")
        for uid, at in (("first", NOW - 7200), ("second", NOW - 900))
    ]
    server.answers |= {"GET /api/history/team/fit": ok(events), "GET /api/history": ok(Gangs(gangs))}
    lines = page("history fit -n team").stdout.splitlines()
    titles = [number for number, line in enumerate(lines) if line.startswith("Job fit, submitted ")]
    assert [lines[number].rpartition(" by ")[2] for number in titles] == ["anne: Failed", "anne: Running"]
    assert ["of first" in lines[titles[0] + 2], "of second" in lines[titles[1] + 2]] == [True, True]
    late = page("history fit -n team --since 1h").stdout
    assert ("of second" in late, "of first" in late, "Job fit, submitted" in late) == (True, False, False)
    nothing = page("history fit -n team --since 1m")
    assert (nothing.exit_code, "the history has no record of a workload 'fit'" in nothing.stderr) == (1, True)


def test_usage_of_the_history(page: Any, server: Server) -> None:
    """By what is asked for, in that order."""
    server.answers["GET /api/usage"] = ok([UsageRow(("q", "anne"), {"nvidia.com/gpu": Seconds(7200, 3600, 1800, 0)})])
    result = page("usage --by queue,user")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "anne" in result.stdout
    assert "by=queue%2Cuser" in next(each for each in server.requests if "/api/usage" in each)


@pytest.mark.parametrize(("known", "url", "words"), [
    (True, "http://muster.example.com", "--server http://muster.example.com: your token is only sent over https://"),
    (False, "", "your kubeconfig has no token, by which the page identifies its users"),
])  # fmt: skip
def test_a_page_that_is_not_asked(page: Any, server: Server, *, known: bool, url: str, words: str) -> None:
    """A token goes over TLS or to this machine; without one nobody is known."""
    result = page("history -A", known=known, **({"url": url} if url else {}))
    assert result.exit_code != 0
    assert words in result.stderr
    assert not [each for each in server.requests if "/api/history" in each]


def test_a_page_of_another_version(page: Any, server: Server) -> None:
    """Its answer is none."""
    server.answers["GET /api/history"] = ok({"gangs": 1})
    result = page("history -A")
    assert result.exit_code == 1
    assert "is not a web page of this version of Muster: Expected `array`, got `int`" in result.stderr


def test_an_explanation_of_the_page(page: Any, server: Server) -> None:
    """Who may not list the cluster asks the page; what it refuses is said, and it may not answer."""
    world = ExplainWorld().nodes(1)
    world.gang("waits", {"worker": (2, {"nvidia.com/gpu": 8})})
    world.plan()
    report = explain_in(WhatIf(world.dump()), "gang", "waits", "ns")
    path = "/api/explain/ns/waits"
    server.answers[f"GET {path}"] = ok(report)
    result = page("explain gang waits -n ns")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0].startswith("Job ns/waits")
    assert f"GET {path}?kind=gang" in server.requests
    server.answers[f"GET {path}"] = FORBIDDEN
    refused = page("explain gang waits -n ns")
    assert refused.exit_code == 1
    assert " says: " in refused.stderr
    server.answers[f"GET {path}"] = (503, "no", [])
    assert " does not answer: " in page("explain gang waits -n ns").stderr
