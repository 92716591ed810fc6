"""The page in the cluster: who sees what, streams, explain, and what is done with users' own tokens."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import audits
import pytest
import yaml
from click.testing import CliRunner
from gang_jobs import job
from page_server import PageServer, page_server, token_of
from tenants import ACCOUNTS, ROLE_BINDINGS, bind, user

from muster.api.kubernetes.core import NAMESPACES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.app import main
from musterctl.chart import roles
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.slow]
OWN, OTHER = "ours", "strangers"


@pytest.fixture(scope="module")
def busy(module_plane: Callable[..., Plane], wait_for: Callable[..., Any]) -> Iterator[Plane]:
    """A plane of two nodes, which a gang of one namespace fills while one of another waits."""
    plane = module_plane(nodes=2)
    admin = plane.client()
    for namespace in (OWN, OTHER):
        admin.create(NAMESPACES, {"metadata": {"name": namespace}})
    admin.create(JOBS, job("secretive", OTHER, replicas=2), OTHER)
    wait_for(lambda: admin.get(JOBS, "secretive", OTHER).status.running == 2, 60, "the gang to run")
    admin.create(JOBS, job("mine", OWN, replicas=2), OWN)
    wait_for(lambda: any(group.why_waiting for group in admin.list(POD_GROUPS, OWN)), 60, "the other to wait")
    yield plane
    admin.close()


@pytest.fixture(scope="module")
def admin(busy: Plane) -> Iterator[Client]:
    """An administrator's client."""
    client = busy.client()
    yield client
    client.close()


@pytest.fixture(scope="module")
def server(busy: Plane, tmp_path_factory: pytest.TempPathFactory, wait_for: Callable[..., Any]) -> Iterator[PageServer]:
    """The page."""
    with page_server(busy, tmp_path_factory.mktemp("page"), wait_for) as running:
        yield running
    assert audits.forbidden(busy) == []


@pytest.fixture(scope="module")
def tokens(busy: Plane, admin: Client, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tokens of ada, who may edit one namespace, of eve, who may nothing, and of an administrator."""
    folder = tmp_path_factory.mktemp("users")
    people = {name: user(busy, OWN, folder, name)[0] for name in ("ada", "eve", "root")}
    bind(busy, "edit", people["ada"])
    bind(busy, "muster-edit", people["ada"])
    bind(busy, "cluster-admin", people["root"], everywhere=True)
    return {name: token_of(admin, OWN, name) for name in people}


def kubeconfig(plane: Plane, folder: Path, token: str) -> Path:
    """A kubeconfig with a token, for the namespace of ours."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    config["contexts"][0]["context"]["namespace"] = OWN
    file = folder / "user.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def test_nobody_sees_anything_without_a_token(server: PageServer) -> None:
    """Pages, data and streams ask for a token, and say how to send one; one that is made up does not count."""
    for path in ("/queues", "/api/explain/ours/mine", "/live?page=queues", "/act/delete/jobs/ours/mine"):
        for token in ("", "made-up"):
            status, text = server.ask(path, token)
            assert (status, "/signin" in text) == (401, True), path
            assert "mine" not in text.replace("/ours/mine", "")


def test_a_user_sees_one_namespace(server: PageServer, tokens: dict[str, str]) -> None:
    """An administrator's explain names the gang in the way; for who sees one namespace it has no name."""
    path = f"/api/explain/{OWN}/mine"
    assert f"Job {OTHER}/secretive" in server.ask(path, tokens["root"])[1]
    status, text = server.ask(path, tokens["ada"])
    assert status == 200
    assert not re.search("secretive|strangers", text)
    assert "a gang of another namespace" in text
    assert json.loads(text)["workload"] == f"Job {OWN}/mine"
    assert server.ask(f"/api/explain/{OTHER}/secretive", tokens["ada"])[0] == 404
    assert server.ask(f"/api/explain/{OTHER}/secretive", tokens["root"])[0] == 200


def test_the_page_of_a_gang_has_the_events_of_its_pods(
    server: PageServer, tokens: dict[str, str], wait_for: Callable[..., Any]
) -> None:
    """kube-scheduler says of each pod that it has got a node."""
    seen = wait_for(
        lambda: re.search(r"Pod (secretive-\w+-0)", server.ask(f"/gangs/{OTHER}/secretive", tokens["root"])[1]),
        what="an Event of a pod",
    )
    assert seen


def test_requests_are_counted_without_names(server: PageServer, tokens: dict[str, str]) -> None:
    """By page and status, with open streams, on the status port; of users and namespaces there is nothing."""

    def counters() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.status_port}/metrics", timeout=5) as answer:
            return "\n".join(line for line in answer.read().decode().splitlines() if line.startswith("muster_web_"))

    server.ask("/queues", tokens["ada"])
    server.ask(f"/gangs/{OTHER}/secretive", tokens["ada"])
    with server.stream("/live?page=queues", tokens["ada"]) as open_one:
        open_one.readline()
        told = counters()
    assert re.search(r'muster_web_requests_total\{page="/queues",status="200"\} [1-9]', told)
    assert re.search(r'muster_web_requests_total\{page="/gangs/\{namespace\}/\{name\}",status="404"\} [1-9]', told)
    assert re.search(r'muster_web_request_seconds_count\{page="/queues"\} [1-9]', told)
    assert re.search("muster_web_streams [1-9]", told)
    assert not re.search(f"{OWN}|{OTHER}|ada|mine|secretive", told)


def test_the_command_asks_the_page(server: PageServer, busy: Plane, tmp_path: Path, tokens: dict[str, str]) -> None:
    """Who may not list the cluster gets the report of the page from `muster explain`, and else what his gang says."""
    file = kubeconfig(busy, tmp_path, tokens["ada"])
    command = ["explain", "job", "mine", f"--kubeconfig={file}"]
    there = [f"--server={server.url}", f"--server-ca={server.authority_file}"]
    with_page = CliRunner().invoke(main, [*command, *there])
    assert with_page.exit_code == 0, with_page.output
    assert "a gang of another namespace" in with_page.output
    assert "secretive" not in with_page.output
    alone = CliRunner().invoke(main, command)
    assert "another namespace" not in alone.output
    assert "you cannot list" in alone.output
    missing = CliRunner().invoke(main, ["explain", "job", "no-such", f"--kubeconfig={file}", *there])
    assert missing.exit_code == 1
    assert "no-such" in missing.output


def test_who_may_see_nothing_is_told_which_right_lacks(server: PageServer, tokens: dict[str, str]) -> None:
    """The answer is 403, with the right and the role that has it."""
    status, text = server.ask("/queues", tokens["eve"])
    assert status == 403
    assert "podgroups.scheduling.volcano.sh" in text
    assert "muster-view" in text


def test_signing_in_keeps_the_token_in_a_cookie_for_no_script(server: PageServer, tokens: dict[str, str]) -> None:
    """A page takes the cookie for the token; forms of other sites are refused."""
    form = {"token": tokens["ada"]}
    assert server.ask("/signin", form=form, sec_fetch_site="cross-site")[0] == 403
    assert server.ask("/signin", form={"token": "made-up"}, sec_fetch_site="same-origin")[0] == 401
    assert server.ask("/signin", form=form, sec_fetch_site="same-origin")[0] == 303
    assert server.ask("/queues", cookie=f"__Host-muster={tokens['ada']}")[0] == 200


def test_a_stream_tells_of_a_change_and_ends_with_the_right(
    server: PageServer, busy: Plane, admin: Client, wait_for: Callable[..., Any]
) -> None:
    """A change in the namespace is told; once the user may not list its gangs any more the stream ends."""
    admin.create(ACCOUNTS, {"metadata": {"name": "bob"}}, OWN)
    subject = {"kind": "ServiceAccount", "name": "bob", "namespace": OWN}
    bind(busy, "view", subject)
    bind(busy, "muster-view", subject)
    token = token_of(admin, OWN, "bob")
    wait_for(lambda: server.ask("/queues", token)[0] == 200, 90, "the rights to count")
    with server.stream("/live?page=gangs", token) as stream:
        assert stream.readline() == b": alive\n"
        admin.create(JOBS, job("another", OWN, replicas=1), OWN)
        lines = iter(stream.readline, b"")
        assert b"event: changed\n" in lines
        for binding in admin.list(ROLE_BINDINGS, OWN):
            if binding["metadata"]["name"].startswith("bob-"):
                admin.delete(ROLE_BINDINGS, binding["metadata"]["name"], OWN)
        assert [line for line in lines if line.startswith(b"data: ")], "the page is told to look once more"
    assert server.ask("/queues", token)[0] == 403
    admin.delete(JOBS, "another", OWN)


def test_what_a_user_may_not_do_is_refused(server: PageServer, tokens: dict[str, str], admin: Client) -> None:
    """Neither in another namespace, nor without the right, nor by a form of another site."""
    uid = admin.get(JOBS, "secretive", OTHER).metadata.uid
    path = f"/act/delete/jobs/{OTHER}/secretive"
    assert server.ask(path, tokens["ada"], {"uid": uid})[0] == 404
    assert server.ask(path, tokens["eve"], {"uid": uid})[0] == 403
    cookie = f"__Host-muster={tokens['root']}"
    assert server.ask(path, form={"uid": uid}, cookie=cookie, origin="https://elsewhere.example")[0] == 403
    assert admin.get(JOBS, "secretive", OTHER).metadata.uid == uid


def test_a_user_suspends_resumes_and_deletes_his_job(
    server: PageServer, tokens: dict[str, str], admin: Client, wait_for: Callable[..., Any]
) -> None:
    """Each is confirmed first, and is about the object that was confirmed; the API server sees the user."""
    admin.create(JOBS, job("toy", OWN, replicas=1, gpus=0), OWN)
    wait_for(lambda: admin.get(JOBS, "toy", OWN).status.running == 1, 60, "the job to run")

    def do(action: str, uid: str = "") -> int:
        path = f"/act/{action}/jobs/{OWN}/toy"
        page = wait_for(lambda: server.ask(path, tokens["ada"]), 30)[1]
        found = re.search('name="uid" value="([^"]+)"', page)
        assert found, page
        return server.ask(path, tokens["ada"], {"uid": uid or found[1]})[0]

    assert do("suspend") == 303
    wait_for(lambda: admin.get(JOBS, "toy", OWN).status.state.phase == "Aborted", 60, "it to be suspended")
    assert do("resume") == 303
    wait_for(lambda: admin.get(JOBS, "toy", OWN).status.running == 1, 60, "it to run again")
    assert do("delete", uid="another") == 409
    assert admin.get(JOBS, "toy", OWN).metadata.uid
    assert do("delete") == 303

    def gone() -> bool:
        try:
            admin.get(JOBS, "toy", OWN)
        except NotFound:
            return True
        return False

    wait_for(gone, 60, "it to be gone")


def test_on_loopback_a_user_sees_what_his_kubeconfig_lets_him(
    busy: Plane, tmp_path: Path, tokens: dict[str, str], wait_for: Callable[..., Any]
) -> None:
    """Who may list one namespace gets its gangs and nothing else; without the key of the URL there is nothing."""
    file = kubeconfig(busy, tmp_path, tokens["ada"])
    command = [sys.executable, "-m", "musterctl", "web", "--no-open", "--port=0", f"--kubeconfig={file}"]
    log = tmp_path / "web.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        found = wait_for(lambda: re.search(r"http://localhost:(\d+)/\?key=(\S+)", log.read_text()), 60, "the URL")
        url, key = f"http://127.0.0.1:{found[1]}", found[2]

        def ask(path: str, **headers: str) -> tuple[int, str]:
            request = urllib.request.Request(url + path, headers=headers)  # noqa: S310 # its own server
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 # the same
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        cookie = {"Cookie": f"muster-{found[1]}={key}"}
        assert wait_for(lambda: ask("/gangs", **cookie)[0] == 200, 60, "the caches to be filled")
        assert ask("/gangs")[0] == 401
        assert ask("/?key=made-up")[0] == 401
        assert ask("/gangs", Host="elsewhere.example", **cookie)[0] == 403
        assert "mine" in ask("/gangs", **cookie)[1]
        for path in ("/gangs", "/queues", "/topology", f"/api/explain/{OWN}/mine"):
            status, text = ask(path, **cookie)
            assert status == 200, (path, text)
            assert not re.search("secretive|strangers", text), path
        assert ask(f"/api/explain/{OTHER}/secretive", **cookie)[0] == 404
    finally:
        process.terminate()
        assert process.wait(30) == 0, log.read_text()


def test_the_page_uses_what_it_is_granted(server: PageServer, busy: Plane) -> None:
    """All that it asks for is granted, and what is granted is asked for, but kinds that this cluster does not have."""
    assert server.process.poll() is None
    requests = [one for one in audits.asked(busy) if one.use.process == roles.WEB]
    used, granted = {one.use for one in requests}, audits.uses_of(roles.rules(roles.WEB), roles.WEB)
    assert used - granted == set()
    absent = {("kueue.x-k8s.io", "topologies")}
    absent |= {("scheduling.k8s.io", kind) for kind in ("podgroups", "compositepodgroups", "workloads")}
    assert {one for one in granted - used if (one.group, one.resource) not in absent} == set()
