"""`muster config check` and `print-defaults`."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from extender.planner.cycle import report_of
from extender.planner.framework.config import SchedulerConfig, parse
from musterctl.app import main


def test_the_defaults_are_a_file_that_says_what_runs_without_one() -> None:
    """It can be edited and used."""
    said = CliRunner().invoke(main, ["config", "print-defaults"])
    assert said.exit_code == 0
    assert parse(said.output) == SchedulerConfig()
    assert report_of(said.output).errors == []


@pytest.mark.parametrize(("text", "code", "words"), [
    ("actions: alocate", 1, "error: actions: there is no action 'alocate'; valid actions: allocate,"),
    ("tiers: [{plugins: [{name: usage}]}]", 0, "tiers[0].plugins[0]: usage: no effect: no plugin of Muster reads"),
    ("tiers: [", 1, "error: the text is not YAML"),
])  # fmt: skip
def test_a_file_is_checked(tmp_path: Path, text: str, code: int, words: str) -> None:
    """With what is wrong, or what has no effect; also from standard input."""
    file = tmp_path / "conf"
    file.write_text(text)
    for argument, stdin in ((str(file), None), ("-", text)):
        said = CliRunner().invoke(main, ["config", "check", argument], input=stdin)
        assert said.exit_code == code
        assert words in said.output


@pytest.mark.parametrize("text", ["a text", "- a", "tiers: [", "actions: 7", "hello: 1", "apiVersion: x/v1\nkind: Foo"])
def test_of_what_cannot_be_read_only_the_errors_are_reported(text: str) -> None:
    """Not what the default configuration does."""
    said = CliRunner().invoke(main, ["config", "check", "-"], input=text)
    assert said.exit_code == 1
    assert "different: " not in said.output
    assert said.output.startswith("error: ")


def test_each_document_of_a_stream_is_checked() -> None:
    """By its number; the extender itself takes one."""
    said = CliRunner().invoke(main, ["config", "check", "-"], input="actions: enqueue\n---\nactions: alocate\n")
    assert said.exit_code == 1
    assert "document 2: error: actions: there is no action 'alocate'" in said.output
    assert "document 1: error" not in said.output
    with pytest.raises(ValueError, match="several documents"):
        parse("actions: enqueue\n---\nactions: allocate\n")


def test_a_shard_of_kai_is_checked() -> None:
    """By the fields of its spec; what Muster has not is named."""
    spec = {
        "args": {"v": "3"},
        "partitionLabelValue": "a",
        "placementStrategy": {"gpu": "spread"},
        "queueDepthPerAction": {"preempt": 10},
        "plugins": {"numa": {"enabled": True}, "topology": {"enabled": False}, "fliker": {"priority": 3}},
    }
    text = yaml.safe_dump({"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "spec": spec})
    said = CliRunner().invoke(main, ["config", "check", "-"], input=text)
    assert said.exit_code == 1
    starts = [line.split(": ")[:2] for line in said.output.splitlines()]
    assert starts == [
        ["error", "spec.plugins.fliker"],
        ["spec.plugins.numa", "no effect"],
        ["queueDepthPerAction", "no effect"],
        ["spec.args", "no effect"],
        ["spec.partitionLabelValue", "no effect"],
    ]


def config_map(**files: str) -> str:
    """A ConfigMap as `kubectl get -o yaml` prints it."""
    metadata = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system", "uid": "u"}
    data = {name.replace("_", "."): text for name, text in files.items()}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


@pytest.mark.parametrize(("text", "code", "words"), [
    (config_map(conf="actions: alocate"), 1, "conf: error: actions: there is no action 'alocate'"),
    (config_map(scheduler_conf="actions: enqueue", seen="0"), 0, "scheduler.conf: tiers[0].plugins[0]: gang: diff"),
    (config_map(a_yaml="actions: enqueue", b_yaml="tears: []"), 1, "b.yaml: error: tears: there is no field"),
    (config_map(), 1, "this ConfigMap has no data"),
])  # fmt: skip
def test_a_config_map_is_checked_as_kubectl_prints_it(text: str, code: int, words: str) -> None:
    """Each file in it, by its name."""
    said = CliRunner().invoke(main, ["config", "check", "-"], input=text)
    assert (said.exit_code, words in said.output) == (code, True), said.output


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Says so."""
    file = tmp_path / "conf"
    file.write_bytes(b"\xff")
    said = CliRunner().invoke(main, ["config", "check", str(file)])
    assert said.exit_code == 1
    assert "it is not UTF-8 text" in said.output


def test_a_scheduler_that_calls_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An https URL says so; without one nothing is said of certificates."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = "https://127.0.0.1:9444"
    for more, folder, name in (
        ([], "/etc/muster/extender-tls", "muster-extender"),
        (["--extender-tls-folder=/tls", "--extender-server-name=a", "--shared"], "/tls", "a"),
    ):
        said = CliRunner().invoke(main, ["config", "scheduler", f"--extender-url={url}", *more])
        assert said.exit_code == 0
        for entry in yaml.safe_load(said.output)["extenders"]:
            assert (entry["urlPrefix"], entry["enableHTTPS"]) == (url, True)
            assert entry["tlsConfig"]["caFile"] == f"{folder}/ca.crt"
            assert entry["tlsConfig"]["serverName"] == name
    assert "tlsConfig" not in CliRunner().invoke(main, ["config", "scheduler"]).output
