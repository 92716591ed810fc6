"""The configuration's file is followed: a good text is used, a bad one is refused once, and the last good one stays."""

import os
import threading
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from extender import configfile
from extender.configfile import ConfigFile
from extender.planner.framework.config import SchedulerConfig

GOOD = 'actions: "enqueue, allocate"\n'
OTHER = 'actions: "enqueue, allocate, stalegangeviction"\n'
BAD = "actions: enqueue, alocate\n"


class Told:
    """Who is told of what the file says."""

    def __init__(self, file: Path) -> None:
        self.used: list[SchedulerConfig] = []
        self.refused: list[str] = []
        self.config = ConfigFile(file)
        self.config.follow(self.used.append, self.refused.append)

    def actions(self) -> list[str]:
        """The actions of each configuration that was used."""
        return [each.actions for each in self.used]


def metric(name: str, **labels: str) -> float:
    """A metric's value now."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_a_good_change_is_used_and_a_bad_one_refused_once(tmp_path: Path) -> None:
    """Log, metric and whoever records the Event are told; a good text again ends it."""
    file = tmp_path / "conf"
    file.write_text(GOOD)
    told = Told(file)
    told.config.read_again()
    assert (told.used, told.refused) == ([], []), "nothing changed"
    assert (told.config.current.actions, told.config.last_report) == ("enqueue, allocate", (GOOD, GOOD, ""))
    refused = metric("muster_config_reloads_total", result="refused")
    file.write_text(OTHER)
    told.config.read_again()
    assert told.actions() == ["enqueue, allocate, stalegangeviction"]
    file.write_text(BAD)
    with capture_logs() as lines:
        told.config.read_again()
        told.config.read_again()
    assert [line["event"] for line in lines] == ["configuration refused, the previous configuration stays in use"]
    [why] = told.refused
    assert str(file) in why
    assert "there is no action 'alocate'" in why
    assert told.config.current.actions == "enqueue, allocate, stalegangeviction"
    assert told.config.last_report == (OTHER, BAD, why.partition("stays in use: ")[2])
    assert metric("muster_config_current") == 0
    assert metric("muster_config_reloads_total", result="refused") == refused + 1
    file.write_text(OTHER)
    told.config.read_again()
    assert metric("muster_config_current") == 1
    assert len(told.used) == 2


def test_the_swap_of_a_mounted_config_map_is_seen(tmp_path: Path) -> None:
    """The file is a link into a folder that is a link; the kubelet replaces the latter."""
    for folder, text in (("..one", GOOD), ("..two", OTHER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "conf").write_text(text)
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "conf").symlink_to("..data/conf")
    told = Told(tmp_path / "conf")
    (tmp_path / "..new").symlink_to("..two")
    (tmp_path / "..new").rename(tmp_path / "..data")
    told.config.read_again()
    assert told.actions() == ["enqueue, allocate, stalegangeviction"]


def test_a_text_of_the_same_size_and_time_is_seen(tmp_path: Path) -> None:
    """A clock ticks coarsely, and tools set times back."""
    file = tmp_path / "conf"
    file.write_text('actions: "enqueue,  allocate"')
    stat = file.stat()
    told = Told(file)
    file.write_text('actions: "enqueue , allocate"')
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    told.config.read_again()
    assert len(told.used) == 1


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """Also one that goes while the extender runs; when it is back it is used."""
    file = tmp_path / "conf"
    file.write_text(GOOD)
    reader = Told(file)
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    reader.config.read_again()
    reader.config.read_again()
    assert [str(file) in why and "the file cannot be read" in why for why in reader.refused] == [True]
    file.write_text(GOOD)
    reader.config.read_again()
    assert len(reader.used) == 1


def test_the_report_is_one_line_of_the_log(tmp_path: Path) -> None:
    """What is different and what has no effect; without a file there is nothing to say."""
    file = tmp_path / "conf"
    file.write_text("tiers: [{plugins: [{name: gang}, {name: usage}]}]")
    with capture_logs() as lines:
        ConfigFile(file)
        ConfigFile(None)
    [line] = lines
    assert line["event"] == "configuration"
    assert [each.partition(":")[0] for each in line["without_effect"]] == ["tiers[0].plugins[1]"]
    assert line["different"]
    assert metric("muster_config_findings", effect="no effect") == 1


def test_a_thread_follows_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in one look does not end it; without a file there is nothing to follow."""
    monkeypatch.setattr(configfile, "INTERVAL_S", 0.01)
    file, used, looks = tmp_path / "conf", threading.Event(), []
    file.write_text(GOOD)
    config = ConfigFile(file)
    config.follow(lambda _: used.set(), lambda _: None)
    look = config.read_again

    def looked() -> None:
        looks.append(1)
        if len(looks) == 1:
            raise ZeroDivisionError
        look()

    monkeypatch.setattr(config, "read_again", looked)
    file.write_text(OTHER)
    config.start()
    assert used.wait(20)
    config.stop()
    assert not config._thread.is_alive()
    none = ConfigFile(None)
    none.start()
    assert none._thread.ident is None
    none.stop()
