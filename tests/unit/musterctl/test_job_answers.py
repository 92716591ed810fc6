"""Output of `muster job` and `muster queue` for answers of an API server."""

import json
import re
from typing import Any

import pytest
import yaml
from answering_server import FORBIDDEN, Server

from muster.kube.errors import warnings_of

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


@pytest.mark.parametrize(
    "command",
    [
        ["job", "list"], ["job", "view", "x"], ["job", "suspend", "x", "y"], ["job", "delete", "x", "y"],
        ["job", "run", "x", "--image=i"], ["queue", "list"], ["queue", "view", "x"], ["queue", "close", "x"],
        ["queue", "create", "x"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_cluster_without_asked(asked: Any, command: list[str]) -> None:
    """Each command asks once whether Muster is installed there."""
    result = asked(*command)
    assert result.exit_code == 1
    assert result.stderr.count("is Muster installed there?") == 1
    assert f"{command[0]}s." in result.stderr
    assert not re.search(r"\b404\b", result.stderr)  # a port may hold these digits


def test_a_kind_of_another_project_is_not_served(asked: Any) -> None:
    """Muster does not install it."""
    message = asked("priority", "jobset/x", "--class=high").stderr
    assert "does not know jobsets.jobset.x-k8s.io: the controller of JobSets is not installed" in message
    assert "is Muster installed" not in message


def test_a_kind_that_is_not_served(asked: Any, server: Server) -> None:
    """It is named; the Job beside it is created all the same."""
    server.answers[f"POST {JOBS}"] = (201, {"metadata": {"name": "a"}}, [])
    job = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\n"
    result = asked("job", "run", "-f", "-", stdin=f"apiVersion: foo/v1\nkind: Foo\nmetadata: {{name: f}}\n---\n{job}")
    assert result.exit_code == 1
    assert "does not know the kind Foo of foo/v1" in result.stderr
    assert result.stdout == "job.batch.volcano.sh/a created\n"


def test_delete_goes_on_after_one_that_is_missing(asked: Any, server: Server) -> None:
    """All had their turn, all errors are said, and the end is 1."""
    for name in ("a", "c"):
        server.missing(f"GET {JOBS}/{name}", name)
    server.answers[f"GET {JOBS}/b"] = (200, {"metadata": {"name": "b", "uid": "u"}}, [])
    server.answers[f"DELETE {JOBS}/b"] = (200, {}, [])
    result = asked("job", "delete", "a", "b", "c")
    assert (result.exit_code, result.stdout) == (1, "job.batch.volcano.sh/b is deleted with its pods\n")
    assert [f"there is no job.batch.volcano.sh/{name} in namespace default" in result.stderr for name in "abc"] == [
        True,
        False,
        True,
    ]


def test_suspend_goes_on_after_one_that_is_missing(asked: Any, server: Server) -> None:
    """So do resume, open and close, which are sent the same way."""
    server.missing(f"GET {JOBS}/a", "a")
    server.answers[f"GET {JOBS}/b"] = (200, {"metadata": {"name": "b", "uid": "u"}}, [])
    commands = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
    server.answers[f"POST {commands}"] = (201, {"metadata": {"name": "b-1"}}, [])
    result = asked("job", "suspend", "a", "b")
    assert (result.exit_code, result.stdout.startswith("job.batch.volcano.sh/b is held")) == (1, True)
    assert [each["action"] for each in server.bodies] == ["AbortJob"]
    assert "there is no job.batch.volcano.sh/a" in result.stderr
    assert f"POST {commands}?fieldValidation=Strict" in server.requests


def test_names_are_taken_as_they_are_printed(asked: Any, server: Server) -> None:
    """The output of `-o name` can be passed back, even by a user who may delete but not read."""
    server.answers[f"GET {JOBS}/a"] = FORBIDDEN
    server.answers[f"DELETE {JOBS}/a"] = (200, {}, [])
    for command in (("job", "delete"), ("cancel",)):
        told = asked(*command, "job.batch.volcano.sh/a")
        assert told.stdout == "job.batch.volcano.sh/a is deleted with its pods\n"


def test_creations_are_strict_and_show_warnings(asked: Any, server: Server) -> None:
    """Each warning once, on stderr, also when the API server refuses."""
    warnings = ['299 - "first \\"quoted\\", ünd second"', '299 - "first \\"quoted\\", ünd second"']
    server.answers[f"POST {QUEUES}"] = (201, {"metadata": {"name": "q"}}, warnings)
    made = asked("queue", "create", "q")
    assert made.stdout == "queue.scheduling.volcano.sh/q created\n"
    assert made.stderr == 'Warning: first "quoted", ünd second\n'
    status = {"kind": "Status", "reason": "Invalid", "message": "no", "details": {"name": "x"}}
    server.answers[f"POST {JOBS}"] = (422, status, ['299 - "careful"'])
    refused = asked("job", "run", "x", "--image=i")
    assert refused.exit_code == 1
    assert refused.stderr == "Warning: careful\nError: cannot create job.batch.volcano.sh/x: no\n"
    assert server.requests == [f"POST {QUEUES}?fieldValidation=Strict", f"POST {JOBS}?fieldValidation=Strict"]


def test_several_mistakes_are_a_list(asked: Any, server: Server) -> None:
    """Field by field, as admission tells them; it says how many more there are."""
    causes = [{"field": "spec.tasks[0].name", "message": "no name"}, {"field": "spec.queue", "message": "no queue"}]
    message = (
        "admission webhook denied the request: spec.tasks[0].name: no name; spec.queue: no queue; and 3 more errors"
    )
    status = {"kind": "Status", "reason": "Invalid", "message": message, "details": {"name": "x", "causes": causes}}
    server.answers[f"POST {JOBS}"] = (422, status, [])
    refused = asked("job", "run", "x", "--image=i")
    assert refused.stderr.splitlines() == [
        "Error: cannot create job.batch.volcano.sh/x: the request has these mistakes:",
        "  spec.tasks[0].name: no name",
        "  spec.queue: no queue",
        "  and 3 more errors",
    ]


def test_warning_headers() -> None:
    """Several in one header, other codes, and what is no warning."""
    assert list(warnings_of(['299 - "a", 299 host "b\\\\c"', '214 - "no"', "nonsense"])) == ["a", "b\\c"]


def test_lists_hide_who_wrote_which_field(asked: Any, server: Server) -> None:
    """As kubectl does: the list and the view, as JSON and as YAML."""
    found = {"metadata": {"name": "a", "namespace": "default", "managedFields": [{"manager": "m"}]}, "spec": {}}
    server.answers[f"GET {JOBS}"] = (200, {"metadata": {"resourceVersion": "1"}, "items": [found]}, [])
    server.answers[f"GET {JOBS}/a"] = (200, found, [])
    bare = {"metadata": {"name": "a", "namespace": "default"}, "spec": {}}
    assert json.loads(asked("job", "list", "-o", "json").stdout)["items"] == [bare]
    assert yaml.safe_load(asked("job", "list", "-o", "yaml").stdout)["items"] == [bare]
    assert json.loads(asked("job", "view", "a", "-o", "json").stdout) == bare
    assert yaml.safe_load(asked("job", "view", "a", "-o", "yaml").stdout) == bare


ends_soon = pytest.mark.timeout(60)
"""A watch that misses its end goes on for ever."""


def named(name: str) -> Any:
    """A Job as a list has it."""
    return {"metadata": {"name": name, "namespace": "default", "resourceVersion": "1"}}


@ends_soon
def test_a_watch_separates_its_documents(asked: Any, server: Server) -> None:
    """Objects come one by one, those of the list too; in YAML dashes stand between them."""
    server.answers[f"GET {JOBS}"] = (200, {"metadata": {"resourceVersion": "1"}, "items": [named("a")]}, [])
    server.events = [named("b"), named("c")]
    output = asked("job", "list", "-w", "-o", "yaml").stdout
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(output)] == ["a", "b", "c"]
    assert output.count("---\n") == 2


@ends_soon
def test_a_watch_goes_on_from_a_bookmark(asked: Any, server: Server) -> None:
    """It is not shown, and the next watch begins at its version."""
    server.answers[f"GET {JOBS}"] = (200, {"metadata": {"resourceVersion": "1"}, "items": []}, [])
    server.events = [named("b")]
    result = asked("job", "list", "-w", "-o", "name")
    assert (result.exit_code, result.stdout) == (0, "job.batch.volcano.sh/b\n")
    assert "resourceVersion=7" in server.requests[-1]


@ends_soon
def test_a_watch_has_its_heading_above_the_first_object(asked: Any, server: Server) -> None:
    """Once, and as wide as what stands below it, also if there was nothing at first."""
    server.answers[f"GET {JOBS}"] = (200, {"metadata": {"resourceVersion": "1"}, "items": []}, [])
    server.events = [named("a-long-name"), named("b")]
    lines = asked("job", "list", "-w").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "a-long-name", "b"]
    assert lines[0].index("STATUS") == len("a-long-name") + 3


def test_the_view_says_why_pods_do_not_run(asked: Any, server: Server) -> None:
    """Kubelet's words stand beside the pod; one that is being deleted says on which node."""
    job = {"metadata": {"name": "a", "namespace": "default", "uid": "u"}, "spec": {}}
    waiting = {"waiting": {"reason": "ErrImageNeverPull", "message": "Container image is not present"}}
    pods = [
        {
            "metadata": {"name": "a-w-0"},
            "spec": {"nodeName": "node-1"},
            "status": {"phase": "Pending", "containerStatuses": [{"name": "main", "state": waiting}]},
        },
        {
            "metadata": {"name": "a-w-1"},
            "spec": {"nodeName": "node-2"},
            "status": {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"},
        },
        {
            "metadata": {
                "name": "a-w-2",
                "deletionTimestamp": "2026-01-01T00:00:30Z",
                "deletionGracePeriodSeconds": 30,
            },
            "spec": {"nodeName": "node-3"},
            "status": {"phase": "Running"},
        },
    ]
    server.answers[f"GET {JOBS}/a"] = (200, job, [])
    server.answers["GET /api/v1/namespaces/default/pods"] = (200, {"metadata": {}, "items": pods}, [])
    server.answers["GET /api/v1/namespaces/default/events"] = (200, {"metadata": {}, "items": []}, [])
    server.missing("GET /apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/a-u", "a-u")
    lines = asked("job", "view", "a").stdout.splitlines()
    shown = lines[lines.index("Pods:") + 1 :]
    assert shown[0] == "  a-w-0: Pending on node-1 (container main: ErrImageNeverPull: Container image is not present)"
    assert shown[1] == "  a-w-1: Failed on node-2 (OutOfcpu: Node didn't have enough resource: cpu)"
    assert shown[2].startswith("  a-w-2: Terminating for ")
    assert shown[2].endswith(" on node-3")
