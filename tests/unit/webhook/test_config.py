"""The webhook's configuration: what is read, and that every mistake is told at once, with its place."""

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest
import yaml
from webhook_world import JSON

from muster.api.kubernetes.constraints import Toleration
from muster.process.settings import text_of
from webhook import settings
from webhook.config import ResourceGroup, load, parse
from webhook.settings import WebhookOptions, WebhookSettings

TEXT = """
resourceGroups:
- resourceGroup: management
  object:
    key: namespace
    value: [ops, "monitoring"]
  schedulerName: default-scheduler
  tolerations:
  - {key: taint, operator: Exists, effect: NoSchedule}
  - {key: dedicated, value: ops, effect: NoExecute, tolerationSeconds: 30}
  labels: {nodetype: management}
- resourceGroup: cpu
  object:
    key: annotation
    value: ["team: blue", "cheap: true"]
  affinity: '{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}'
- resourceGroup: gpu
  object:
  schedulerName: volcano
  affinity:
    podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}
"""


def group(**fields: object) -> JSON:
    """A group that is right, but for these fields; with None they are left out."""
    return {"resourceGroup": "a", "labels": {"x": "y"}, **fields}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def by_nodes(**expression: object) -> JSON:
    """A group with this expression about labels of nodes."""
    terms = [{"matchExpressions": [{"key": "x", **expression}]}]
    return group(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})


def by_pods(**expression: object) -> JSON:
    """A group with this expression about labels of pods."""
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "x", **expression}]}}
    return group(affinity={"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}})


def told(*groups: JSON, **more: object) -> list[str]:
    """The mistakes in these groups."""
    with pytest.raises(ValueError, match=r"^admission configuration: ") as error:
        parse(yaml.safe_dump({"resourceGroups": list(groups), **more}))
    return str(error.value).removeprefix("admission configuration: ").split("; resourceGroups")


def test_everything_that_a_group_can_say() -> None:
    """Namespaces, annotations, the annotation that is meant where none is said, and all effects."""
    management, cpu, gpu = parse(TEXT)
    assert management == ResourceGroup(
        name="management",
        namespaces=("ops", "monitoring"),
        scheduler_name="default-scheduler",
        tolerations=(
            Toleration(key="taint", operator="Exists", effect="NoSchedule"),
            Toleration(key="dedicated", value="ops", effect="NoExecute", toleration_seconds=30),
        ),
        labels={"nodetype": "management"},
    )
    assert cpu.annotations == (("team", "blue"), ("cheap", "true"))
    assert cpu.affinity["nodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}
    }
    assert gpu.annotations == (("volcano.sh/resource-group", "gpu"),)
    assert gpu.affinity == {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}


@pytest.mark.parametrize("text", ["", "# nothing\n", "resourceGroups:\n", "resourceGroups: []\n"])
def test_no_groups(text: str) -> None:
    """A configuration may be empty, as Volcano's is at first."""
    assert parse(text) == ()


@pytest.mark.parametrize(("wrong", "sentence"), [
    (group(label={}), '[0].label: Unsupported value: "label": there is no such field; there are resourceGroup, obj'),
    ({"labels": {"x": "y"}}, "[0].resourceGroup: Required value: it is missing"),
    (group(resourceGroup=""), "[0].resourceGroup: Required value: the group needs a name"),
    (group(resourceGroup=7), "[0].resourceGroup: Invalid value: 7: should be text (in quotes"),
    (group(object={"value": ["a"]}), "[0].object.key: Required value: it is missing"),
    (group(object={"key": "label", "value": ["a"]}), '"label": should be one of namespace, annotation'),
    (group(object={"key": "namespace", "value": []}), "[0].object.value: Invalid value: []: give at least one"),
    (group(object={"key": "annotation", "value": ["a"]}), '[0].object.value[0]: Invalid value: "a": should be an'),
    (group(object={"key": "annotation", "value": ["a: b: c"]}), 'should be an annotation, as "key: value"'),
    (group(object={"key": "annotation", "value": [{"a": "b"}]}), "[0].object.value[0]: Invalid value: "),
    (group(labels=None), '[0]: Invalid value: "a": the group changes nothing; give it schedulerName'),
    (group(labels=None, affinity="{}"), "the group changes nothing"),
    (group(labels={"x": True}), "[0].labels[x]: Invalid value: true: should be text"),
    (group(schedulerName=["volcano"]), "[0].schedulerName: Invalid value: "),
    (group(tolerations={"key": "a"}), "[0].tolerations: Invalid value: "),
    (group(tolerations=[{"key": "a", "efect": "b"}]), "[0].tolerations[0].efect: Unsupported value"),
    (group(tolerations=[{"key": "a", "operator": "In"}]), "should be one of Equal, Exists"),
    (group(tolerations=[{"key": "a", "effect": "Never"}]), "should be one of NoSchedule, PreferNoSchedule, NoExec"),
    (group(tolerations=[{"value": "a"}]), "[0].tolerations[0].key: Required value: may only be left out"),
    (group(tolerations=[{"operator": "Exists", "value": "a"}]), "[0].tolerations[0].value: Invalid value"),
    (group(tolerations=[{"key": "a", "tolerationSeconds": 3}]), "is allowed with effect NoExecute only"),
    (group(tolerations=[{"key": "a", "tolerationSeconds": True}]), "should be a whole number"),
    (group(affinity=3), "[0].affinity: Invalid value: 3: should be a mapping"),
    (group(affinity="{"), "should be an affinity: a mapping, or text in JSON or YAML; it is not YAML: while parsing"),
    (group(affinity="nodeAffinity: 3"), "[0].affinity.nodeAffinity: Invalid value: 3: should be a mapping"),
    (group(affinity={"node": {}}), "there are nodeAffinity, podAffinity, podAntiAffinity"),
    (group(**{"a.b": 3}), '[0][a.b]: Unsupported value: "a.b": there is no such field'),
    (group(affinity={"a.b": {}}), '[0].affinity[a.b]: Unsupported value: "a.b": there is no such field'),
    (group(affinity="&a {nodeAffinity: *a}"), "[0].affinity: Invalid value: "),
    (group(affinity="2026-02-30"), "it is not YAML: day is out of range for month"),
    (group(labels={"a b": ""}), '[0].labels[a b]: Invalid value: "a b": should be a key: at most 63 characters'),
    (group(labels={"A/b": ""}), '[0].labels[A/b]: Invalid value: "A/b": should be a key'),
    (group(labels={"/b": ""}), '[0].labels[/b]: Invalid value: "/b": should be a key'),
    (group(labels={"x" * 64: ""}), "should be a key"),
    (group(labels={"x": "-a"}), '[0].labels[x]: Invalid value: "-a": should be empty, or at most 63 characters'),
    (group(labels={"x": "y" * 64}), "should be empty, or at most 63 characters"),
    (group(schedulerName="My Scheduler"), '[0].schedulerName: Invalid value: "My Scheduler": should be the name'),
    (group(object={"key": "namespace", "value": ["a", "kube-system"]}), '[0].object.value[1]: Invalid value: "kube'),
    (group(tolerations=[{"key": "a b"}]), '[0].tolerations[0].key: Invalid value: "a b": should be a key'),
    (group(tolerations=[{"key": "a", "value": "b c"}]), "[0].tolerations[0].value: Invalid value"),
    (by_nodes(operator="Is", values=["a"]), '.operator: Invalid value: "Is": should be one of In, NotIn, Exists, '),
    (by_nodes(operator="in", values=["a"]), "DoesNotExist, Gt, Lt"),
    (by_nodes(operator="In"), ".values: Required value: operator In needs at least one value"),
    (by_nodes(operator="NotIn", values=["a b"]), '.values[0]: Invalid value: "a b": should be empty, or'),
    (by_nodes(operator="Exists", values=["a"]), '.values: Invalid value: ["a"]: operator Exists checks only the key'),
    (by_nodes(operator="Gt", values=["a"]), '.values: Invalid value: ["a"]: operator Gt compares with one whole'),
    (by_nodes(key="", operator="Exists"), '[0].matchExpressions[0].key: Invalid value: "": should be a key'),
    (group(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}), ".nodeSelectorTerms: Required value"),
    (group(affinity={"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}), "should be from 1 to 100"),
    (group(affinity={"podAffinity": {REQUIRED: [{"topologyKey": ""}]}}), "[0].topologyKey: Invalid value"),
    (by_pods(operator="Gt", values=["1"]), '"Gt": should be one of In, NotIn, Exists, DoesNotExist'),
])  # fmt: skip
def test_a_mistake(wrong: JSON, sentence: str) -> None:
    """It is told with its path, and what would be right."""
    [message] = told(wrong)
    assert sentence in message


def test_names_are_unique() -> None:
    """Of two groups with one name, the second is the mistake."""
    [message] = told(group(), group())
    assert message == (
        'resourceGroups[1].resourceGroup: Duplicate value: "a": resourceGroups[0] already has this name; '
        "give each group a different name"
    )


def test_all_mistakes_are_told_together() -> None:
    """Whatever is right or wrong elsewhere."""
    bad = {"key": "a", "operator": "In", "effect": "Never"}
    worse = group(name="b", labels=3, object={"key": "annotation", "value": ["x"]})
    messages = told(group(), worse, group(tolerations=[bad], affinity={"node": {}}), namespaces=["x"])
    assert [message.partition(": ")[0] for message in messages] == [
        "namespaces",
        "[1].labels",
        "[1].name",
        "[1].resourceGroup",
        "[1].object.value[0]",
        "[2].resourceGroup",
        "[2].affinity.node",
        "[2].tolerations[0].operator",
        "[2].tolerations[0].effect",
    ]


@pytest.mark.parametrize("right", [
    group(labels={"x": "", "example.com/A_b.c": "A_b.c", "y" * 63: "z" * 63}),
    group(schedulerName="a-b.c", tolerations=[{"operator": "Exists"}, {"key": "example.com/a", "value": "B_1"}]),
    by_nodes(operator="In", values=["a", ""]),
    by_nodes(operator="DoesNotExist"),
    by_nodes(operator="Lt", values=["-5"]),
    by_pods(key="example.com/x", operator="NotIn", values=["a"]),
    group(affinity={"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": {}}]}}),
])  # fmt: skip
def test_what_the_api_server_takes(right: JSON) -> None:
    """It is no mistake."""
    assert len(parse(yaml.safe_dump({"resourceGroups": [right]}))) == 1


@pytest.mark.parametrize("text", [
    "resourceGroups: [",
    "- a",
    "7",
    "a: 2026-02-30",
    "a: &a [*a]",
    "resourceGroups: &a [{resourceGroup: *a}]",
    "[" * 2000,
])  # fmt: skip
def test_what_is_no_configuration_at_all(text: str) -> None:
    """The sentence stands on one line, as it goes into a log."""
    sentences = r"admission configuration: (it is not YAML|the file should be a map|the file cannot be read)"
    with pytest.raises(ValueError, match=sentences) as error:
        parse(text)
    assert "\n" not in str(error.value)


def test_a_file(tmp_path: Path) -> None:
    """A message names the file, also of one that cannot be read."""
    file = tmp_path / "admission.yaml"
    with pytest.raises(ValueError, match=rf"^{file}: .*No such file"):
        load(file)
    file.write_text("groups: []")
    with pytest.raises(ValueError, match=rf"^{file}: admission configuration: groups: "):
        load(file)
    file.write_text(TEXT)
    assert load(file) == parse(TEXT)


def test_the_process_ends_at_a_mistake(tmp_path: Path) -> None:
    """With code 2 and one line that says why, before it listens."""
    file = tmp_path / "admission.yaml"
    file.write_text("groups: []")
    settings = tmp_path / "settings.yaml"
    settings.write_text(text_of(WebhookSettings(config=str(file)), {}))
    command = [sys.executable, "-m", "webhook", f"--settings={settings}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    [line] = (result.stdout + result.stderr).splitlines()
    record = json.loads(line)
    assert (record["event"], record["level"]) == ("cannot start", "error")
    assert record["why"].startswith(f"{file}: admission configuration: groups: ")


@pytest.mark.parametrize(("port", "fits"), [(-1, False), (0, True), (65_535, True), (65_536, False)])
def test_ports(port: int, *, fits: bool) -> None:
    """0 lets the system choose one."""
    with nullcontext() if fits else pytest.raises(msgspec.ValidationError):
        assert msgspec.convert({"port": port}, WebhookSettings).port == port


def test_every_default() -> None:
    """Nothing has to be given."""
    assert settings.parse([]) == WebhookOptions(
        kubeconfig="", host="127.0.0.1", drain_seconds=0, settings=WebhookSettings()
    )


def test_every_flag() -> None:
    """Each flag sets the field of its name."""
    assert settings.parse(["--kubeconfig=k", "--host=::", "--drain-seconds=95"]) == WebhookOptions(
        kubeconfig="k", host="::", drain_seconds=95, settings=WebhookSettings()
    )


@pytest.mark.parametrize("wrong", ["-1", "3601", "1000000000", "95s", ""])
def test_a_wrong_time_to_drain_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the flag, the limits and the value."""
    with pytest.raises(SystemExit, match="2"):
        settings.parse([f"--drain-seconds={wrong}"])
    expected = f"argument --drain-seconds: should be a whole number of seconds from 0 to 3600, and is {wrong!r}"
    assert expected in capsys.readouterr().err
