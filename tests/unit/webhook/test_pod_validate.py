"""Pods of our schedulers: disruption budgets in annotations, and how many resources they name."""

import pytest
from webhook_world import JSON, request

from muster.api.limits import RESOURCES
from webhook.validate.pod import review

MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


def refused(**annotations: str) -> list[str]:
    """The paths of the errors."""
    keys = {"least": MIN, "most": MAX}
    pod: JSON = {"metadata": {"name": "p", "annotations": {keys[key]: text for key, text in annotations.items()}}}
    return [error.path for error in review(request(pod)).errors]


@pytest.mark.parametrize("amount", ["1", "12", "1%", "50%", "99%"])
def test_amounts(amount: str) -> None:
    """A number of pods, or a share of them."""
    assert refused(least=amount) == refused(most=amount) == []


@pytest.mark.parametrize("amount", ["", "0", "-1", "1.5", "x", "0%", "100%", "5 %", "\u0665"])
def test_what_is_no_amount(amount: str) -> None:
    """Each annotation is named."""
    assert refused(least=amount) == [f"metadata.annotations[{MIN}]"]
    assert refused(most=amount) == [f"metadata.annotations[{MAX}]"]


@pytest.mark.parametrize(("annotations", "phrase"), [
    ({MIN: "-1"}, f'invalid value <"-1"> for {MIN}, it must be a positive integer'),
    ({MAX: "0"}, f'invalid value <"0"> for {MAX}, it must be a positive integer'),
    ({MIN: "0%"}, f'invalid value <"0%"> for {MIN}, it must be a valid percentage which between 1% ~ 99%'),
    ({MAX: "100%"}, f'invalid value <"100%"> for {MAX}, it must be a valid percentage which between 1% ~ 99%'),
    ({MIN: "1", MAX: "50%"}, f"not allow configure multiple annotations <[{MIN} {MAX}]> at same time"),
])  # fmt: skip
def test_phrases_of_volcano(annotations: JSON, phrase: str) -> None:
    """Tools look for them; of two annotations the second is refused, whatever they say."""
    [error] = review(request({"metadata": {"name": "p", "annotations": annotations}})).errors
    assert error.path == f"metadata.annotations[{list(annotations)[-1]}]"
    assert phrase in str(error)


@pytest.mark.parametrize("count", [RESOURCES.value, RESOURCES.value + 1])
def test_resource_names(count: int) -> None:
    """The limit is named, whichever containers name them."""
    names = [f"example.com/{number}" for number in range(count)]
    containers = [{"name": f"c{n}", "resources": {"limits": dict.fromkeys(names[n::5], "1")}} for n in range(5)]
    errors = review(request({"metadata": {"name": "p"}, "spec": {"containers": containers}})).errors
    assert [error.path for error in errors] == ["spec.containers"] * (count > RESOURCES.value)
    assert all("limit 'resource names per pod'" in error.message for error in errors)
