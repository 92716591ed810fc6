"""Commands on a plane that exists and whose parts do not run: what they show, and what they refuse."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from musterctl.app import main
from musterctl.cluster import Where, known_plane
from musterctl.commands import up
from musterctl.plane import state
from musterctl.plane.commandlines import CommandLines
from musterctl.plane.machine import LocalError
from musterctl.plane.pki import Pki
from musterctl.plane.plane import Plane
from musterctl.plane.state import PlaneOptions

PARTS = [state.ETCD, state.API_SERVER, state.WEBHOOK]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of plane `one`, which is the only one; nothing of it runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # neither kind nor kubectl are there
    monkeypatch.delenv("MUSTER_NAME", raising=False)
    found = state.folder_of("one")
    state.create(found, PlaneOptions(), tuple(PARTS))
    Pki(found).ensure(extender_tls=False)
    return found


def muster(*arguments: str) -> Result:
    """Runs the command line; an error of a plane is its output."""
    return CliRunner().invoke(main, arguments)


def test_the_status_has_a_line_for_each_part(folder: Path) -> None:
    """What has died is told with the end of its log, and how it is started; then the exit code is 1."""
    told = muster("status")
    assert told.exit_code == 0, told.output
    assert [line.split()[:2] for line in told.output.splitlines()[1:4]] == [[part, "stopped"] for part in PARTS]
    assert told.output.splitlines()[4:] == [
        f"folder {folder}", f"kubeconfig {folder}/admin.kubeconfig", "page muster web --name one",
    ]  # fmt: skip
    (folder / "run").mkdir()
    (folder / "run" / "etcd.pid").write_text("999999999")
    (folder / "log").mkdir()
    (folder / "log" / "etcd.log").write_text("no room on the disk\n")
    died = muster("status", "--name=one")
    assert died.exit_code == 1
    assert died.output.splitlines()[1].split()[:2] == ["etcd", "dead"]
    assert f"etcd ended. The end of {folder}/log/etcd.log:\nno room on the disk\n" in died.output
    assert died.output.endswith("`muster up --name one` restarts dead processes.\n")


def test_a_plane_goes_with_its_folder(folder: Path) -> None:
    """And then there is none."""
    assert muster("down").output == "plane one is down\n"
    assert not folder.exists()
    assert "there is no local control plane 'one'; `muster up` creates one" in muster("down", "--name=one").output


def test_a_plane_is_known_by_its_name_and_by_its_kubeconfig(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by that in KUBECONFIG, unless there is a name."""
    state.create(other := state.folder_of("two"), PlaneOptions(), tuple(PARTS))
    assert known_plane(Where(plane="two")) == other
    assert known_plane(Where(plane="one")) == known_plane(Where(folder / "admin.kubeconfig")) == folder
    assert known_plane(Where(folder.parent / "other" / "admin.kubeconfig")) is None
    monkeypatch.setenv("KUBECONFIG", str(folder.parent / "other" / "admin.kubeconfig"))
    assert (known_plane(Where()), known_plane(Where(plane="one"))) == (None, folder)
    monkeypatch.setenv("KUBECONFIG", str(folder / "admin.kubeconfig"))
    assert known_plane(Where()) == folder


def test_what_is_not_there_is_named(folder: Path) -> None:
    """A plane with those that exist, a part with those that it has."""
    assert "there is no local control plane 'two'; there is one" in muster("status", "--name=two").output
    with pytest.raises(
        LocalError, match="this control plane has no component 'history'; it has etcd, kube-apiserver, webhook"
    ):
        Plane(folder).part(state.HISTORY)
    assert muster("restart", "nothing").exit_code == 2
    assert "this control plane has no component 'history'" in muster("restart", "history").output


@pytest.mark.parametrize(("typed", "variable", "passed"), [
    (["--name", "one", "get", "pods", "--name", "x"], None, ["get", "pods", "--name", "x"]),
    (["get", "pods", "-A"], None, ["get", "pods", "-A"]),
    (["--help"], "one", ["--help"]),
    (["--name"], None, ["--name"]),
])  # fmt: skip
def test_kubectl_gets_all_arguments(
    folder: Path, monkeypatch: pytest.MonkeyPatch, typed: list[str], variable: str | None, passed: list[str]
) -> None:
    """But for a name in front."""
    ran: list[Any] = []
    monkeypatch.setattr(os, "execv", lambda *words: ran.append(words))
    monkeypatch.setattr(Plane, "kubectl_program", lambda _: Path("/bin/kubectl"))
    if variable:
        monkeypatch.setenv("MUSTER_NAME", variable)
    assert muster("kubectl", *typed).exit_code == 0
    assert ran == [(Path("/bin/kubectl"), ["kubectl", f"--kubeconfig={folder}/admin.kubeconfig", *passed])]


def test_an_attached_plane_takes_the_kubectl_that_there_is(folder: Path, tmp_path: Path) -> None:
    """Of the PATH; without one it says where the kubeconfig is."""
    plane = Plane(folder.parent / "two", PARTS, PlaneOptions(kubeconfig=str(tmp_path / "theirs")))
    assert plane.attached
    assert plane.kubeconfig == tmp_path / "theirs"
    with pytest.raises(LocalError, match=f"kubectl is not on the PATH; the cluster's kubeconfig is {tmp_path}/theirs"):
        plane.kubectl_program()
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\nread line\necho "$line: $*"\nexit 3\n')
    program.chmod(0o755)
    assert plane.kubectl_program() == program
    done = plane.kubectl("get", "pods", stdin="a line\n")
    assert (done.returncode, done.stdout) == (3, f"a line: --kubeconfig={tmp_path}/theirs get pods\n")


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("played", [False, True])
def test_each_part_has_its_command_line(tmp_path: Path, *, shared: bool, played: bool) -> None:
    """Nothing is left to be filled in; ports are the plane's, each of one part; files that are named are there."""
    options = PlaneOptions(shared=shared, pool=() if shared else ("b",))
    parts = state.parts_of(state.ALL, options.pool)
    made = state.create(tmp_path, options, parts)
    pki = Pki(tmp_path)
    pki.ensure(extender_tls=False)
    lines = CommandLines(
        folder=tmp_path, current_options=lambda: options, ports=made.ports, pki=pki, settings={}, played=played,
        binaries=lambda: {name: Path(f"/bin/{name}") for name in state.ALL if not state.is_own(name)},
        kubeconfig=lambda part: tmp_path / f"{part}.kubeconfig",
    )  # fmt: skip
    for part in parts:
        words = lines.command(part)
        own = state.is_own(part)
        assert words[0] == (sys.executable if own else f"/bin/{state.program_of(part)}")
        assert (words[1:3] == ["-m", state.base_of(part)]) is own
        assert not [word for word in words if "{" in word]
        named = [Path(word.partition("=")[2]) for word in words if "=/" in word]
        assert not [file for file in named if file.suffix in {".yaml", ".crt", ".key"} and not file.is_file()], part
        port = str(made.ports[part if part in made.ports else f"{part}-status"])
        assert port in lines.listens(part)
        is_plain = state.base_of(part) in {state.ETCD, state.KWOK, state.EXTENDER, state.CONTROLLER, state.HISTORY}
        assert lines.listens(part).startswith("http:") is is_plain, part
        texts = [file.read_text() for file in named if file.name.endswith("-settings.yaml")]
        assert any(port in text for text in (*words, *texts)), part
    assert any("--node-monitor-grace-period=" in word for word in lines.command(state.CONTROLLER_MANAGER)) is played


@pytest.mark.parametrize(("options", "words"), [
    (["--kubernetes=0.1"], "--kubernetes 0.1: supported versions are 1."),
    (["--pool=a", "--pool=B"], "--pool B: use lower-case letters, digits and '-', at most"),
    (["--pool=b", "--shared-scheduler"], "--pool: cannot be combined with --shared-scheduler"),
    (["--no-scheduler"], "--no-scheduler requires --kubeconfig"),
    (["--kubeconfig={}", "--nodes=3", "--racks=1"], "--nodes, --racks: cannot be combined with --kubeconfig"),
    (["--image=x"], "--image requires --provider kind"),
    (["--cpu=many"], "--cpu"),
    (["--gpus=-1"], "--gpus"),
    (["--provider=kind", "--cpu=8", "--foreground"], "cannot be combined with --provider kind; use the chart"),
    (["--provider=kind", "--name=one"], "one is a control plane of local processes; `muster down --name one` ends it"),
    (["--name=one", "--nodes=3", "--cpu=32"], "plane one exists with nodes 8; `muster down --name one` ends it"),
    (["--name=one", "--kubernetes=1.34"], "plane one exists with kubernetes unset; "),
])  # fmt: skip
def test_options_that_cannot_be_had_are_refused(folder: Path, tmp_path: Path, options: list[str], words: str) -> None:
    """Before anything is made or started."""
    (tmp_path / "kubeconfig").write_text("{}")
    before = (folder / "plane.json").read_bytes()
    name = [] if any(each.startswith("--name") for each in options) else ["--name=new"]
    told = muster("up", *name, *(each.format(tmp_path / "kubeconfig") for each in options))
    assert told.exit_code != 0
    assert words in " ".join(told.output.split())
    assert (state.names(), (folder / "plane.json").read_bytes()) == (["one"], before)


def test_a_plane_keeps_the_configuration_that_it_is_given(folder: Path) -> None:
    """An extender that does not run takes it up when it starts."""
    plane = up.plane_of("one", {"planning_config": "actions: allocate"})
    assert plane.state.options.planning_config == "actions: allocate"
    assert not (folder / "planning.yaml").exists()
    assert [up.change_planning(plane, before) for before in (None, "actions: allocate")] == [False, False]
    assert up.plane_of("one").state.options.planning_config == "actions: allocate"
    assert up.plane_of("one", {"planning_config": ""}).state.options == PlaneOptions()
