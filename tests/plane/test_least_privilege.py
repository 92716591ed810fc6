"""Every right that is used is granted, and every right that is granted is used."""

from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import audits
import pytest
import yaml
from audits import Asked, Use
from making import SERVES_NATIVE_GROUPS
from native_gates import ARGUMENTS
from rights_scenario import FULL, GPUS, NODES_THERE, STEPS, Scenario
from told import betrayed, files_of, secrets_of
from told import told as told_by

from extender.planner.api import defaults
from muster.api.kubernetes.core import NAMESPACES, SECRETS
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from musterctl.chart import roles
from musterctl.plane.plane import Plane
from musterctl.plane.state import ALL, API_SERVER, CONTROLLER, EXTENDER, WEBHOOK

pytestmark = [pytest.mark.plane, pytest.mark.long]
OWN = (roles.WEBHOOK, roles.EXTENDER, roles.CONTROLLER, roles.HISTORY, roles.WEB)
NAMESPACE = "everything"
NATIVE = ARGUMENTS if SERVES_NATIVE_GROUPS else {}
"""What the cluster's parts are told where they know native PodGroups."""
_SERVED = f"/apis/{NATIVE_POD_GROUPS.group}/{NATIVE_POD_GROUPS.version}"
OWNERS = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"


@pytest.fixture(scope="module")
def scenario(
    module_plane: Callable[..., Plane], tmp_path_factory: pytest.TempPathFactory, wait_for: Callable[..., Any]
) -> Iterator[Scenario]:
    """A plane where everything has happened that needs a right; its API server minds owner references, too."""
    shipped = tmp_path_factory.mktemp("shipped")
    spec: dict[str, Any] = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": []}}}
    runtime = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime"}
    (shipped / "runtime.yaml").write_text(yaml.safe_dump({**runtime, "metadata": {"name": "shipped"}, "spec": spec}))
    plane = module_plane(
        ALL,
        planning_config=defaults(),
        nodes=NODES_THERE,
        gpus=GPUS,
        arguments={**NATIVE, API_SERVER: [OWNERS, *NATIVE.get(API_SERVER, ())]},
        settings={
            WEBHOOK: {"logLevel": "debug"},
            EXTENDER: {"stalenessGrace": 1, "logLevel": "debug"},
            CONTROLLER: {"shipped": str(shipped), "logLevel": "debug"},
        },
    )
    with closing(plane.client()) as client:
        client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        with secrets_of(client) as secrets:
            yield Scenario(plane, client, NAMESPACE, wait_for, secrets)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_it_happens(scenario: Scenario, step: Callable[[Scenario], None]) -> None:
    """What the following tests look at; each step goes on only when the rights that it is for were used."""
    step(scenario)


@pytest.fixture(scope="module")
def requests(scenario: Scenario) -> list[Asked]:
    """All that Muster's processes asked for."""
    return list(audits.asked(scenario.plane))


def told(uses: set[Use]) -> list[str]:
    """Uses as people read them."""
    return sorted(f"{use.process}: {use.verb} {use.resource} ({use.group or 'core'})" for use in uses)


@pytest.mark.parametrize("process", OWN)
def test_what_is_used_is_granted(requests: list[Asked], process: str) -> None:
    """To that very process: what kube-scheduler beside it may do is not the extender's."""
    used = {one.use for one in requests if one.use.process == process}
    assert used
    granted = audits.uses_of(roles.rules(process), process)
    asked = {one for one in used if not (one.verb == "get" and one.resource == _SERVED)}  # everybody may ask that
    assert told(asked - granted) == []
    assert told({one.use for one in requests if one.forbidden}) == []


@pytest.mark.parametrize("process", [*OWN, roles.SCHEDULER])
def test_what_is_granted_is_used(requests: list[Asked], process: str) -> None:
    """A right that nothing needs is not there to be stolen."""
    granted = audits.uses_of((rule for rule in roles.rules(process) if not rule.implicit), process)
    if not NATIVE:  # nothing but lists is asked of a kind that there is not
        granted = {one for one in granted if one.group != NATIVE_POD_GROUPS.group or one.verb in {"list", "watch"}}
    if process == roles.CONTROLLER:  # it publishes gangs, and mends and takes back: test_native_deciders.py
        granted = {one for one in granted if one.group != NATIVE_POD_GROUPS.group}
    assert told(granted - {one.use for one in requests}) == []


def test_nothing_was_refused_by_admission_either(requests: list[Asked]) -> None:
    """Owner references that block deletion, what policies ask for, applies that create: these rights are implicit.

    In the full namespace a quota refuses pods, also when the webhook tries them.
    """
    refused = {one for one in requests if one.code == HTTPStatus.FORBIDDEN and not one.namespace.endswith(FULL)}
    assert not {(one.use, one.namespace, one.name) for one in refused}


def test_secrets_of_others_are_not_touched(scenario: Scenario, requests: list[Asked]) -> None:
    """RBAC cannot say which Secrets are the controller's; its code does, and asks for no others by name."""
    touched = {(one.namespace, one.name): one.use for one in requests if one.use.resource == "secrets" and one.name}
    assert touched
    assert all(use.process == roles.CONTROLLER for use in touched.values())
    assert {namespace for namespace, _ in touched} == {scenario.namespace}
    assert all(name.endswith(("-ssh", "-mpi-ssh-auth")) for _, name in touched)
    assert not [one for one in requests if one.use.resource == "secrets" and one.use.verb in {"list", "watch"}]


def test_nothing_secret_is_told(scenario: Scenario) -> None:
    """Of no Secret that there was, of no token and no key: neither in a log, an object, an Event nor a metric."""
    secrets = scenario.secrets | files_of(scenario.plane)
    assert len(scenario.secrets) > 10, "keys of a Job, and of an MPI workload"
    texts = told_by(scenario.plane, scenario.client)
    assert {"events", "metrics of webhook-status", "metrics of controller-status"} <= texts.keys()
    assert betrayed(texts, secrets) == []
    for each in (*sorted(secrets)[:3], "Authorization: Bearer abcdefghijkl", "-----BEGIN PRIVATE KEY-----"):
        assert betrayed({**texts, "a log": f"it is {each}, you see"}, secrets), "it would be found"


def test_no_process_is_an_administrator(scenario: Scenario, tmp_path: Path) -> None:
    """Each kubeconfig has a token of an account, and nothing else."""
    del tmp_path
    for part in ("webhook", "extender", "controller", "muster-scheduler"):
        config = yaml.safe_load(scenario.plane.commandlines.kubeconfig(part).read_text())
        assert [set(user["user"]) for user in config["users"]] == [{"tokenFile"}]
    assert scenario.client.list(SECRETS, "muster-system") == []
