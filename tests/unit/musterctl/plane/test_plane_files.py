"""What a plane remembers and writes: names, ports, nodes, scheduler configuration."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from extender.barrier import LONGEST_S
from extender.settings import parse as parse_extender
from muster.api import names
from muster.process.tls import Files, ServerTLS
from musterctl.app import main
from musterctl.chart import files
from musterctl.chart.files import ExtenderAt
from musterctl.commands.up import plane_of
from musterctl.plane import install, machine, state
from musterctl.plane.machine import LocalError
from musterctl.plane.plane import Plane
from musterctl.plane.state import PlaneOptions
from webhook.settings import WebhookSettings
from webhook.settings import parse as parse_webhook


def test_state_survives_and_folders_have_plain_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was created is loaded again; a name that is not a plain word is refused."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = state.folder_of("one")
    assert state.load(folder) is None
    created = state.create(folder, PlaneOptions(nodes=3, webhook_port=12_345), state.COMPONENTS)
    assert state.load(folder) == created
    assert created.ports["webhook"] == 12_345
    assert state.names() == ["one"]
    for name in ("../two", "", "Two", "-two"):
        with pytest.raises(LocalError, match="cannot be named"):
            state.folder_of(name)


def test_unreadable_state_says_what_to_do(tmp_path: Path) -> None:
    """A broken plane.json is an error that names the file and the way out."""
    (tmp_path / "plane.json").write_text("{}")
    with pytest.raises(LocalError, match=f"remove {tmp_path} to start again"):
        state.load(tmp_path)


def test_ports_are_outside_of_the_ephemeral_range() -> None:
    """No outgoing connection can take a part's port while the part restarts."""
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    chosen = machine.free_ports(20)
    assert len(set(chosen)) == 20
    assert not [port for port in chosen if first <= port <= last]


@given(count=st.integers(1, 300), runs=st.integers(1, 40))
def test_runs_are_consecutive_and_even(count: int, runs: int) -> None:
    """Racks hold consecutive nodes, and their sizes differ by one at most."""
    racks = [install.run_of(index, count, runs) for index in range(count)]
    assert racks == sorted(racks)
    assert set(racks) <= set(range(runs))
    sizes = [racks.count(rack) for rack in range(runs)]
    assert max(sizes) - min(sizes) <= 1


def extenders(at: ExtenderAt) -> list[dict[str, Any]]:
    """The entries of the extender in the configuration of Muster's kube-scheduler."""
    entries: list[dict[str, Any]] = files.kube_scheduler(kubeconfig="", extender=at)["extenders"]
    return entries


def test_names_in_the_configurations() -> None:
    """The files of the chart name profiles, the Lease and the marker resources as the code does."""
    own = files.kube_scheduler(kubeconfig="")
    shared = files.kube_scheduler(shared=True, kubeconfig="/etc/kubernetes/scheduler.conf")
    profiles = [names.SCHEDULER, names.VOLCANO_SCHEDULER]
    assert [each["schedulerName"] for each in own["profiles"]] == profiles
    assert [each["schedulerName"] for each in shared["profiles"]] == [names.CLUSTER_SCHEDULER, *profiles]
    lease = own["leaderElection"]
    assert (lease["resourceNamespace"], lease["resourceName"]) == (names.SYSTEM_NAMESPACE, names.SCHEDULER_LEASE)
    markers = [each["name"] for entry in shared["extenders"] for each in entry["managedResources"]]
    assert markers == [names.MEMBER_MARKER, names.BINDING_MARKER]


def test_gangs_of_musters_profiles_have_one_decider() -> None:
    """kube-scheduler's own gangs and preemption are off in Muster's profiles, and as they were in the cluster's."""
    off = {"DefaultPreemption", "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"}
    for shared in (False, True):
        for profile in files.kube_scheduler(kubeconfig="", shared=shared)["profiles"]:
            ours = profile["schedulerName"] in names.SCHEDULERS
            disabled = profile.get("plugins", {}).get("multiPoint", {}).get("disabled", [])
            assert {each["name"] for each in disabled} == (off if ours else set())


def test_bind_waits_longer_than_the_other_verbs() -> None:
    """The extender has two entries: one decides from memory, the other, with a longer time limit, binds."""
    decide, bind = extenders(ExtenderAt("http://127.0.0.1:1/"))
    assert (decide["filterVerb"], decide["prioritizeVerb"], bind["bindVerb"]) == ("filter", "prioritize", "bind")
    assert "bindVerb" not in decide
    assert int(decide["httpTimeout"].rstrip("s")) < LONGEST_S < int(bind["httpTimeout"].rstrip("s"))
    assert {decide["urlPrefix"], bind["urlPrefix"]} == {"http://127.0.0.1:1"}


def test_over_tls_kube_scheduler_shows_a_certificate() -> None:
    """Files, which it reads again; both entries are alike, as they are for one server."""
    for entry in extenders(ExtenderAt("https://127.0.0.1:1", "/tls", "name")):
        assert entry["enableHTTPS"]
        assert entry["tlsConfig"] == {
            "serverName": "name",
            "certFile": "/tls/client.crt",
            "keyFile": "/tls/client.key",
            "caFile": "/tls/ca.crt",
        }
    for entry in extenders(ExtenderAt("http://127.0.0.1:1")):
        assert not {"enableHTTPS", "tlsConfig"} & set(entry)


def test_a_plane_over_tls(tmp_path: Path) -> None:
    """Its scheduler is told where the certificates are that the extender asks for; they are made once."""
    plane = Plane(tmp_path, options=PlaneOptions(extender_tls=True))
    plane._pki.ensure(extender_tls=True)
    folder = plane._pki.extender_folder
    settings = parse_extender(plane.commandlines.command("extender")[3:]).settings
    assert settings.tls == Files(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
    ServerTLS(settings.tls).read_files()
    made = [file.read_bytes() for file in settings.tls]
    plane._pki.ensure(extender_tls=True)
    assert [file.read_bytes() for file in settings.tls] == made
    assert plane.commandlines.extender() == ExtenderAt(
        f"https://127.0.0.1:{plane.state.ports['extender']}", str(folder)
    )


def webhook_settings(plane: Plane) -> WebhookSettings:
    """What the plane would start its webhook with."""
    return parse_webhook(plane.commandlines.command("webhook")[3:]).settings


def test_settings_of_tests_win(tmp_path: Path) -> None:
    """Over what the plane says of itself; what is left alone stays."""
    plane = Plane(tmp_path, settings={"webhook": {"logLevel": "debug", "statusPort": 1}})
    plane._pki.ensure()
    settings = webhook_settings(plane)
    assert (settings.log_level, settings.status_port) == ("debug", 1)
    assert settings.port == plane.state.ports["webhook"]


def test_the_webhooks_configuration_belongs_to_the_plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The webhook reads what the plane was made with, however the file changes; another content is another plane."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    text = "resourceGroups: [{resourceGroup: gpu, labels: {pool: gpu}}]\n"
    plane = Plane(state.folder_of("one"), options=PlaneOptions(admission_config=text))
    plane._pki.ensure()
    assert Path(webhook_settings(plane).config or "").read_text() == text
    assert plane_of("one", {"admission_config": text}).state == plane_of("one").state
    with pytest.raises(LocalError, match="plane one exists with admission config of other content; `muster down"):
        plane_of("one", {"admission_config": "resourceGroups: []"})
    other = Plane(state.folder_of("two"))
    other._pki.ensure()
    assert webhook_settings(other).config is None
    with pytest.raises(LocalError, match="plane two exists with admission config unset"):
        plane_of("two", {"admission_config": text})


def test_a_mistake_in_the_webhooks_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told before anything is made."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "admission.yaml"
    file.write_text("resourceGroups: [{resourceGroup: gpu}]")
    result = CliRunner().invoke(main, ["up", f"--admission-config={file}"])
    assert result.exit_code == 2
    assert "the group changes nothing" in result.stderr
    assert state.names() == []
