"""Arguments of the built-in plugins: wrong ones are refused with what would be right, and limits are in the range."""

import re
from typing import Any

import pytest

from extender.planner.plugins import PLUGINS

KEYS = [f"k{number}" for number in range(16)]
NOT_NEGATIVE = "it must be a number that is not negative"
WRONG: dict[str, list[tuple[dict[str, Any], str]]] = {
    "topology": [({"level": ["a"]}, "no argument 'level'; valid arguments: levels, topologies, profile"),
                 ({"levels": "a"}, "levels must be a list of 1 to 16 different label keys"),
                 ({"levels": []}, "levels must be a list"), ({"levels": ["a", "a"]}, "different label keys"),
                 ({"levels": ["a", ""]}, "different label keys"), ({"levels": ["a", 1]}, "different label keys"),
                 ({"levels": [*KEYS, "more"]}, "a list of 1 to 16"),
                 ({"topologies": {"x": []}}, "topologies[x] must be a list"),
                 ({"topologies": ["x"]}, "topologies must be at most 64 names"),
                 ({"topologies": {f"x{number}": ["a"] for number in range(65)}}, "topologies must be at most 64 names"),
                 ({"topologies": {"hypernodes": ["a"]}}, "'hypernodes' is the name of the tree of HyperNodes"),
                 ({"topologies": {"default": ["a"]}, "levels": ["a"]}, "'default' is the name of the topology under"),
                 ({"profile": "tight"}, "profile is 'tight'; valid: best-fit")],
    "nodeorder": [({"leastrequested": 1}, "plugin 'nodeorder' has no argument 'leastrequested'"),
                  ({"mostrequested.weight": "many"}, f"mostrequested.weight is 'many'; {NOT_NEGATIVE}"),
                  ({"mostrequested.weight": True}, f"mostrequested.weight is True; {NOT_NEGATIVE}"),
                  ({"nodeaffinity.weight": -1}, f"nodeaffinity.weight is -1; {NOT_NEGATIVE}")],
    "binpack": [
        ({"binpack.gpu": 1}, "valid arguments: binpack.weight, binpack.cpu, binpack.memory, binpack.resources, "),
        ({"binpack.resources": "a", "binpack.resources.a": "x"}, "binpack.resources.a is 'x'"),
    ],
    "fragmentation": [({"filling": 1}, "valid arguments: fill, coverage, kinds"),
                      ({"fill": 2}, "fill is 2.0; the value must be from 0 to 1"),
                      ({"coverage": 1.5}, "coverage is 1.5; the value must be from 0 to 1")],
    "dynamicresources": [
        ({"groupClaims": each}, f"groupClaims is {each!r}; the value must be true") for each in ("yes", 1, None)
    ],
    "proportion": [
        ({"rounding": "floor"}, "rounding is 'floor'; the value must be 'exact' or 'kai'"),
        ({"kValue": "many"}, "kValue is 'many', which is not a number"),
        ({"relcaimerSaturationMultiplier": 0.9}, "relcaimerSaturationMultiplier is 0.9; it must be 1 or more"),
        ({"halfLife": "soon"}, "halfLife: 'soon' is not a duration"),
        ({"halfLife": "0s"}, "halfLife is 0 s; it must be more than 0"),
        ({"half": 1}, "valid arguments: rounding, kValue, relcaimerSaturationMultiplier, halfLife"),
    ],
    "minruntime": [
        ({"reclaimResolveMethod": "x"}, "reclaimResolveMethod is 'x'; valid: lca, queue"),
        ({"defaultPreemptMinRuntime": "soon"}, "defaultPreemptMinRuntime: 'soon' is not a duration"),
        ({"defaultReclaimMinRuntime": ""}, "defaultReclaimMinRuntime: '' is not a duration"),
    ],
    "nodeplacement": [({"gpu": "binpak"}, "gpu is 'binpak'; valid: binpack, spread"), ({"tpu": "spread"}, "cpu, gpu")],
    "reservations": [
        ({"mode": "x"}, "mode is 'x'; it must be one of strict, reserve, besteffort"),
        *(({"heads": each}, f"heads is {each}; it must be a number from 0 to 256") for each in (-1, 257, True, 1.5)),
        ({"expiry": "long"}, "plugin 'reservations': expiry: 'long' is not a duration"),
    ],
    "overcommit": [({"overcommit-factor": "x"}, "overcommit-factor is 'x'"), ({"factor": 1}, "overcommit-factor")],
    "sla": [({"sla-waiting-time": "soon"}, "'soon' is not a duration"), ({"time": 1}, "sla-waiting-time")],
    "gang": [({"x": 1}, "plugin 'gang' has no argument 'x'; valid arguments: none")],
}  # fmt: skip
RIGHT: list[tuple[str, dict[str, Any]]] = [
    ("topology", {"levels": KEYS, "topologies": {f"x{number}": ["a"] for number in range(64)}}),
    ("topology", {"topologies": {"default": ["a"]}}),
    ("fragmentation", {"fill": 1, "coverage": 0}),
    ("dynamicresources", {"groupClaims": "True"}),
    ("proportion", {"relcaimerSaturationMultiplier": "1", "kValue": 0, "halfLife": "1s"}),
    ("reservations", {"heads": 0}),
    ("reservations", {"heads": 256, "mode": "strict", "patience": "0s"}),
    ("minruntime", {"defaultPreemptMinRuntime": "0s", "reclaimResolveMethod": "queue"}),
]


@pytest.mark.parametrize(
    ("plugin", "arguments", "words"), [(name, *row) for name, rows in WRONG.items() for row in rows]
)
def test_a_wrong_argument_is_refused(plugin: str, arguments: dict[str, Any], words: str) -> None:
    """With its name and its value, or with the arguments that there are."""
    with pytest.raises(ValueError, match=re.escape(words)):
        PLUGINS[plugin](arguments)


@pytest.mark.parametrize(("plugin", "arguments"), RIGHT)
def test_the_limits_of_an_argument_are_allowed(plugin: str, arguments: dict[str, Any]) -> None:
    """Largest and smallest values, and numbers as texts."""
    assert PLUGINS[plugin](arguments)
