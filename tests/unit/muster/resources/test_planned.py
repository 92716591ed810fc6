"""The parts of pod templates that are planned by."""

import msgspec
import pytest

from muster.resources.planned import planned_template

CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x"]},
    "spec": {
        "containers": [{"name": "main", "image": "i", "command": ["c"], "args": ["a"], "env": [{"name": "E"}],
                        "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80, "hostPort": 80}]}],
        "initContainers": [{"name": "init", "image": "i", "restartPolicy": "Always"}],
        "volumes": [CLAIM | {"more": 1}, {"name": "own", "ephemeral": {}}, {"name": "keys", "secret": {}}],
        "nodeSelector": {"zone": "a"},
    },
}  # fmt: skip


def test_what_says_nothing_about_nodes_is_left_out() -> None:
    """Of containers images, commands and variables, of volumes all but claims; the rest stays."""
    found = planned_template(TEMPLATE)
    assert msgspec.to_builtins(found) == {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {
            "containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}},
                            "ports": [{"containerPort": 80, "hostPort": 80}]}],
            "initContainers": [{"name": "init", "resources": {}, "restartPolicy": "Always"}],
            "volumes": [CLAIM, {"name": "own", "ephemeral": {}}],
            "nodeSelector": {"zone": "a"},
        },
    }  # fmt: skip
    assert found.size_bytes == len(msgspec.json.encode(found))


def test_an_empty_template_is_one() -> None:
    """And one of another shape is an error."""
    assert planned_template({}).spec.containers == []
    with pytest.raises(msgspec.ValidationError):
        planned_template({"spec": {"containers": 3}})
