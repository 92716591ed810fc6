"""The settings of the processes: one place for each, and every mistake named with its path."""

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import controller.settings
import extender.settings
import history.settings
import webhook.settings
from muster.crds.schema import field_descriptions
from musterctl.app import main
from musterctl.settings import PROCESSES, defaults

PAGE = Path(__file__).parents[3] / "docs/configuration.md"
PARSERS = {
    "webhook": webhook.settings.parse,
    "extender": extender.settings.parse,
    "controller": controller.settings.parse,
    "history": history.settings.parse,
}


@pytest.mark.parametrize("process", PROCESSES)
def test_the_defaults_change_nothing(process: str, tmp_path: Path) -> None:
    """The printed file is whole, and says what is so without a file."""
    file = tmp_path / "settings.yaml"
    file.write_text(CliRunner().invoke(main, ["config", "print-defaults", process]).output)
    assert PARSERS[process]([f"--settings={file}"]) == PARSERS[process]([])
    assert set(yaml.safe_load(file.read_text())) == {"apiVersion", "kind", *PROCESSES[process].__struct_encode_fields__}


@pytest.mark.parametrize("process", PROCESSES)
def test_each_thing_is_said_in_one_place(process: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No field of the file is a flag, and who gives it as a flag is told where it belongs."""
    for field in PROCESSES[process].__struct_encode_fields__:
        flag = "--" + re.sub("[A-Z]", lambda match: f"-{match[0].lower()}", field)
        for given in ([f"{flag}=1"], [flag, "1"]):
            with pytest.raises(SystemExit) as ended:
                PARSERS[process](given)
            assert ended.value.code == 2
            output = capsys.readouterr().err
            assert f"error: {flag}: this is not a flag: set {field} in the file of --settings" in output


@pytest.mark.parametrize("process", PROCESSES)
def test_a_flag_that_does_not_exist(process: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, and neither is one half of another."""
    for given in ("--nonsense", "--kube=k", "word"):
        with pytest.raises(SystemExit) as ended:
            PARSERS[process]([given])
        assert ended.value.code == 2
        assert f"error: unrecognized arguments: {given}\n" in capsys.readouterr().err


def test_the_page_has_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/configuration.md lists what the processes' --help says."""
    said = set()
    for parse in PARSERS.values():
        with pytest.raises(SystemExit):
            parse(["--help"])
        said |= set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    assert said == set(re.findall(r"^\| `(--[a-z-]+) ", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("process", PROCESSES)
def test_each_field_says_what_it_is(process: str) -> None:
    """In whole sentences, and the file has them all."""
    settings = PROCESSES[process]
    descriptions = field_descriptions(settings)
    assert set(descriptions) == set(settings.__struct_encode_fields__)
    for text in descriptions.values():
        assert text.endswith("."), text
    assert defaults(process).count("\n\n#") == len(descriptions)


CERTIFICATES = "kind: ControllerConfiguration\ncertSecret: s\ncertDnsName: [a]\n"
WRONG = {
    "several at once": ("kind: ControllerConfiguration\nworkers: 0\nlogLevel: loud\nleaseDuration: soon\nworkrs: 3\n",
        ("workers: Invalid value: 0: should be at least 1 and at most 256",
        'logLevel: Unsupported value: "loud": should be one of debug, error, info, warning',
        'leaseDuration: Invalid value: "soon": should be a number',
        'workrs: Unsupported value: "workrs": there is no such field; there are statusPort, workers,')),
    "what does not fit together": ("kind: ControllerConfiguration\ncertSecret: s\n",
        ("certDnsName: name the webhook, e.g. muster-webhook.muster-system.svc",)),
    "a port without what it needs": ("kind: ControllerConfiguration\nreportPort: 1\nreportUrl: https://a.svc\n",
        ("reportPort: it requires reportCertFile, reportKeyFile, reportCaFile",)),
    "lives that leave no time": (f"{CERTIFICATES}certLifetime: 30m\ncertAuthorityLifetime: 5h\n",
        ("certLifetime: must be at least six hours (6h), because only the last third is left for the renewal",
        "certAuthorityLifetime: must be at least six hours (6h), because only the last third is left for the renewal")),
    "a life that is too long": (f"{CERTIFICATES}certLifetime: 1000000h\n",
        ("certLifetime: must be at most a hundred years (876000h)",)),
    "an issuer": (f"{CERTIFICATES}certIssuer: me\n", ('certIssuer: Unsupported value: "me": should be one of',)),
    "a duration": ("kind: ControllerConfiguration\ncertSecret: s\ncertDnsName: [a]\ncertLifetime: 90d\n",
        ("certLifetime: '90d' is not a duration; write it like 30s, 5m or 1h30m",)),
    "another kind": ("kind: Controller\n", ("kind: 'Controller' is not a kind of settings; valid kinds are ",)),
    "limits": ("kind: ExtenderConfiguration\nbarrierTimeout: 15\nrecoveryTimeout: -1\n",
        ("barrierTimeout: Invalid value: 15: should be more than 0 and less than 15",
        "recoveryTimeout: Invalid value: -1: should be at least 0")),
    "a truth that is a number": ("kind: WebhookConfiguration\nmarkPods: 1\nport: true\n",
        ("markPods: Invalid value: 1: should be true or false", "port: Invalid value: true: should be a whole number")),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_named(name: str) -> None:
    """By `muster config check`, all at once, with exit code 1."""
    text, messages = WRONG[name]
    said = CliRunner().invoke(main, ["config", "check", "-"], input=f"apiVersion: config.muster.dev/v1beta1\n{text}")
    assert said.exit_code == 1
    for message in messages:
        assert f"error: {message}" in said.output
    assert len(said.output.splitlines()) == len(messages)


@pytest.mark.parametrize(("version", "errors"), [("v1beta1", 0), ("v1alpha1", 0), ("v1", 1)])
def test_files_of_both_versions_are_read(version: str, errors: int) -> None:
    """The chart writes the older one, which the processes of the version before read."""
    text = f"apiVersion: config.muster.dev/{version}\nkind: WebhookConfiguration\n"
    said = CliRunner().invoke(main, ["config", "check", "-"], input=text)
    assert said.exit_code == errors
    wanted = "apiVersion: should be config.muster.dev/v1beta1, and is 'config.muster.dev/v1'"
    assert (wanted in said.output) == bool(errors)


def test_a_process_does_not_start_with_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the file, and ends with code 2."""
    file = tmp_path / "settings.yaml"
    file.write_text("apiVersion: config.muster.dev/v1alpha1\nkind: ExtenderConfiguration\nport: 70000\n")
    with pytest.raises(SystemExit) as ended:
        extender.settings.parse([f"--settings={file}"])
    assert ended.value.code == 2
    assert f"{file}: port: Invalid value: 70000: should be at least 0 and at most 65535" in capsys.readouterr().err


def test_what_is_right_is_said(tmp_path: Path) -> None:
    """With exit code 0."""
    for process in PROCESSES:
        file = tmp_path / f"{process}.yaml"
        file.write_text(defaults(process))
        said = CliRunner().invoke(main, ["config", "check", str(file)])
        assert (said.exit_code, said.output) == (0, "all settings have their documented effect\n")
