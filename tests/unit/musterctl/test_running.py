"""What the extenders and the recorder have published is found wherever Muster is installed, or a note says why not."""

import json
import time
from typing import Any

import click
import pytest

from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.configuration import PublishedConfig, Suspects
from muster.api.names import WEBHOOKS
from muster.kube.errors import APIError, Forbidden, NotFound
from musterctl.running import config_of, published_by, published_in, suspects_of, usage_in

REFUSED = Forbidden("you may not get configmaps")
Answers = dict[tuple[str, str], Any]
"""Namespace and name → the object, or the error."""


class Client:
    """A cluster with these objects; the webhook's are those of no namespace."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def get(self, _resource: object, name: str, namespace: str = "") -> Any:
        """Return it, or raise it."""
        found = self.answers.get((namespace, name), NotFound(f"{name} not found"))
        if isinstance(found, Exception):
            raise found
        return found


def client(answers: Answers) -> Any:
    """That cluster."""
    return Client(answers)


def published(**data: str) -> PublishedConfig:
    """A ConfigMap of the default pool."""
    return PublishedConfig(metadata=ObjectMeta(name="muster-planner", namespace="here"), data=data)


def webhook(namespace: str) -> dict[str, Any]:
    """The configuration of a webhook that runs in that namespace."""
    return {"webhooks": [{"clientConfig": {"service": {"namespace": namespace}}}]}


@pytest.mark.parametrize("namespace", ["muster-system", "kube-system", "elsewhere"])
def test_it_is_found_where_muster_is_installed(namespace: str) -> None:
    """Where it mostly is, where the lease of the cluster is, and where its webhook runs."""
    found = published()
    answers: Answers = {(namespace, "muster-planner"): found, ("", WEBHOOKS): webhook("elsewhere")}
    assert published_in(client(answers)) is found
    assert published_in(client(answers), "b") is None


@pytest.mark.parametrize("answer", [Forbidden("no"), NotFound("none"), {}, {"webhooks": [{}]}, webhook("")])
def test_nothing_is_published(answer: Any) -> None:
    """Nobody says where, or nothing is there."""
    assert published_in(client({("", WEBHOOKS): answer})) is None


def test_each_pool_has_its_own() -> None:
    """One that may not be read is known to be there."""
    one = published()
    answers: Answers = {("muster-system", "muster-planner"): one, ("muster-system", "muster-planner-b"): REFUSED}
    assert published_by(client(answers), ["", "b", "c"]) == {"": one, "b": REFUSED}


def test_the_configuration_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its text; the default one without any, or with a note where it may not be read."""
    text = json.dumps({"plugins": []})
    assert [config_of(told, "") for told in (published(**{"config.yaml": ""}), published(), None)] == ["", "", ""]
    assert capsys.readouterr().err == ""
    assert config_of(REFUSED, "") == ""
    assert capsys.readouterr().err == (
        "Note: the planner's default configuration is used, because you may not get configmaps; "
        "--scheduler-config names another\n"
    )
    with pytest.raises(click.ClickException) as caught:
        config_of(published(**{"config.yaml": text}), "")
    assert caught.value.message.startswith("the extender's current configuration (ConfigMap here/muster-planner) ca")
    assert caught.value.message.endswith("; install the extender's plugins here, or --scheduler-config names another")


def test_what_is_suspect(capsys: pytest.CaptureFixture[str]) -> None:
    """As each extender has it; a note tells of those that are not known."""
    told = {"": published(**{"suspects.json": '{"conditions":["X=True"]}'}), "b": REFUSED, "c": published()}
    assert suspects_of(told, ["", "b", "c", "d"]) == {"": Suspects(("X=True",))}
    assert capsys.readouterr().err.splitlines() == [
        (
            "Note: the default list of this version decides which nodes are suspect in pool b, as you may not get "
            "configmaps"
        ),
        *(
            f"Note: the default list of this version decides which nodes are suspect in pool {pool}, as the "
            f"extender has not published "
            f"another (ConfigMap muster-planner-{pool})"
            for pool in "cd"
        ),
    ]


def test_what_queues_have_used(capsys: pytest.CaptureFixture[str]) -> None:
    """A note tells of a recorder that is silent, and of what cannot be read; without one nothing is said."""

    def used(answer: Any) -> tuple[bool, str]:
        return usage_in(client({("ns", "muster-usage"): answer}), "ns") is not None, capsys.readouterr().err

    def at(ago_s: float) -> PublishedConfig:
        return PublishedConfig(data={"usage.json": json.dumps({"until": (time.time() - ago_s), "queues": {}})})

    assert used(NotFound("none")) == (False, "")
    refused = "Note: the budgets of queues are treated as unused, because ConfigMap muster-usage cannot be read: "
    assert used(APIError("broken")) == (False, f"{refused}broken\n")
    assert used(PublishedConfig(data={"usage.json": "["}))[1].startswith(refused)
    assert used(at(0.0)) == (True, "")
    silent, note = used(at(4000.0))
    assert silent
    assert note.startswith("Note: the recorder of the history has published no usage for 66m")
