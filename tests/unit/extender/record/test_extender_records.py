"""The parts of the extender as they are wired in the process: what its reflectors and its planner do is recorded."""

import asyncio
from pathlib import Path

import pytest
from explain_world import ExplainWorld
from recorded_world import GPU

from extender.configfile import ConfigFile
from extender.main import Extender
from extender.planner.state.feed import FEED
from extender.record import lines
from extender.record.reading import Recording
from extender.replay.check import check_recording
from extender.scaling import Scaling
from extender.settings import ExtenderOptions, ExtenderSettings
from muster.kube.reflector import Reflector

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
"""


def test_reflectors_cycles_and_configuration_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An extender that is shown a small cluster records it with its decisions, which a check takes again."""
    monkeypatch.setattr(Scaling, "refresh", lambda *_: None)  # it asks the API server
    folder, kubeconfig, config = tmp_path / "recording", tmp_path / "kubeconfig", tmp_path / "config.yaml"
    kubeconfig.write_text(KUBECONFIG)
    config.write_text('actions: "allocate"\n')
    settings = ExtenderSettings(record_folder=str(folder), config=str(config), node_fault_grace_s=12.0)
    options = ExtenderOptions(
        kubeconfig=str(kubeconfig), host="", status_host="", identity_prefix="x_", settings=settings
    )
    world = ExplainWorld().nodes(1)
    world.gang("gang", {"worker": (1, {GPU: 8})}, phase="Inqueue")
    loop = asyncio.new_event_loop()
    extender = Extender(options, ConfigFile(config), loop)
    told = world.dump()
    for resource, reflector in extender._cluster._reflectors.items():
        if isinstance(reflector, Reflector):
            for item in told.objects_of(resource):
                reflector.mirror.add_object(item)
    extender._planner.cycle()
    config.write_text('actions: "reclaim"\n')
    extender._config_file.read_again()
    extender._planner.cycle()
    extender._recording.stop()
    loop.close()

    found = [*Recording(folder)]
    (head,) = (line for line in found if isinstance(line, lines.Head))
    assert (head.config, head.settings["nodeFaultGrace"]) == ('actions: "allocate"\n', 12.0)
    kinds = {fed.resource.full_name for fed in FEED if told.objects_of(fed.resource)}
    assert {line.kind for line in found if isinstance(line, lines.KnownLine)} >= kinds
    cycles = [[words[0] for words in line.decided] for line in found if isinstance(line, lines.Cycle)]
    assert cycles == [["place"], []]
    assert [line.text for line in found if isinstance(line, lines.ConfigLine)] == ['actions: "reclaim"\n']
    report = check_recording(Recording(folder))
    assert (report.cycles, report.equal, report.differences) == (2, 1, [])
