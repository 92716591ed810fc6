"""The settings of the processes: a field for each flag with the same default, and every mistake named with its path."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from muster.crds.schema import field_descriptions
from musterctl.app import main
from musterctl.settings import PROCESSES, defaults

PER_POD = {"kubeconfig", "host", "status_host", "report_host", "identity_prefix"}
NEEDED = {"webhook": ["--port=9443", "--status-port=8080", "--cert-file=c", "--key-file=k"]}


def flags(process: str, *arguments: str) -> dict[str, Any]:
    """What the process makes of arguments, as built-in types."""
    options = PROCESSES[process].parse([*arguments])
    return {name: getattr(options, name) for name in options.__slots__}


@pytest.mark.parametrize("process", PROCESSES)
def test_the_defaults_change_nothing(process: str, tmp_path: Path) -> None:
    """The printed file is whole, and says what flags say by default."""
    file = tmp_path / "settings.yaml"
    file.write_text(CliRunner().invoke(main, ["config", "print-defaults", process]).output)
    by_flags, by_file = flags(process, *NEEDED.get(process, ())), flags(process, f"--settings={file}")
    assert {name for name in by_flags if by_flags[name] != by_file[name]} <= {"cert_file", "key_file"}
    fields = {field.name for field in msgspec.structs.fields(PROCESSES[process].settings)}
    known = {name for name in by_flags if name != "certificates"} - PER_POD
    assert {name for name in fields if not (process == "controller" and name.startswith("cert_"))} == known


@pytest.mark.parametrize("process", PROCESSES)
def test_each_field_says_what_it_is(process: str) -> None:
    """In whole sentences, and the file has them all."""
    settings = PROCESSES[process].settings
    descriptions = field_descriptions(settings)
    assert set(descriptions) == set(settings.__struct_encode_fields__)
    for text in descriptions.values():
        assert text.endswith("."), text
    assert defaults(process).count("\n\n#") == len(descriptions)


def test_a_flag_wins_over_the_file(tmp_path: Path) -> None:
    """As it is what differs in this pod."""
    file = tmp_path / "settings.yaml"
    file.write_text("apiVersion: config.muster.dev/v1alpha1\nkind: ControllerConfiguration\nworkers: 7\nshipped: a\n")
    assert flags("controller", f"--settings={file}", "--workers=9")["workers"] == 9
    given = flags("controller", f"--settings={file}")
    assert (given["workers"], given["shipped"], given["lease_duration_s"]) == (7, Path("a"), 15.0)


WRONG = {
    "several at once": (
        "kind: ControllerConfiguration\nworkers: 0\nlogLevel: loud\nleaseDuration: soon\nworkrs: 3\n",
        (
            "workers: Invalid value: 0: should be at least 1 and at most 256",
            'logLevel: Unsupported value: "loud": should be one of debug, error, info, warning',
            'leaseDuration: Invalid value: "soon": should be a number',
            'workrs: Unsupported value: "workrs": there is no such field; there are statusPort, workers,',
        ),
    ),
    "what does not fit together": (
        "kind: ControllerConfiguration\ncertSecret: s\n",
        ("certDnsName: name the webhook, e.g. muster-webhook.muster-system.svc",),
    ),
    "a duration": (
        "kind: ControllerConfiguration\ncertSecret: s\ncertDnsName: [a]\ncertLifetime: 90d\n",
        ("certLifetime: '90d' is not a duration; write it like 30s, 5m or 1h30m",),
    ),
    "another kind": ("kind: Controller\n", ("kind: there is no 'Controller'; there are WebhookConfiguration,",)),
    "limits": (
        "kind: ExtenderConfiguration\nbarrierTimeout: 15\nrecoveryTimeout: -1\n",
        (
            "barrierTimeout: Invalid value: 15: should be more than 0 and less than 15",
            "recoveryTimeout: Invalid value: -1: should be at least 0",
        ),
    ),
    "a truth that is a number": (
        "kind: WebhookConfiguration\nmarkPods: 1\nport: true\n",
        ("markPods: Invalid value: 1: should be true or false", "port: Invalid value: true: should be a whole number"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_named(name: str) -> None:
    """By `muster config check`, all at once, with exit code 1."""
    text, messages = WRONG[name]
    said = CliRunner().invoke(main, ["config", "check", "-"], input=f"apiVersion: config.muster.dev/v1alpha1\n{text}")
    assert said.exit_code == 1
    for message in messages:
        assert f"error: {message}" in said.output
    assert len(said.output.splitlines()) == len(messages)


def test_a_process_does_not_start_with_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the file, and ends with code 2."""
    file = tmp_path / "settings.yaml"
    file.write_text("apiVersion: config.muster.dev/v1alpha1\nkind: ExtenderConfiguration\nport: 70000\n")
    with pytest.raises(SystemExit) as ended:
        flags("extender", f"--settings={file}")
    assert ended.value.code == 2
    assert f"{file}: port: Invalid value: 70000: should be at least 0 and at most 65535" in capsys.readouterr().err


def test_what_is_right_is_said(tmp_path: Path) -> None:
    """With exit code 0."""
    for process in PROCESSES:
        file = tmp_path / f"{process}.yaml"
        file.write_text(defaults(process))
        said = CliRunner().invoke(main, ["config", "check", str(file)])
        assert (said.exit_code, said.output) == (0, "everything in it does what it says\n")
