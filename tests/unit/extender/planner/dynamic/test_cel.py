"""Expressions over a device mean what they mean to the API server, cost little, and are asked once per difference."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.dynamic import cel
from extender.planner.dynamic.cel import Selector, UnsupportedError, mentions
from extender.planner.dynamic.functions import quantity_value, semver_value
from muster.api.kubernetes.devices import Device, DeviceAttribute, DeviceCapacity
from muster.resources.quantity import format_quantity, parse

A, C = 'device.attributes["gpu.example.com"]', 'device.capacity["gpu.example.com"]'
DRIVER = "gpu.example.com"


def device(**more: str) -> Device:
    """One of everything; more attributes are texts."""
    attributes = {
        "model": DeviceAttribute(text="a100"),
        "index": DeviceAttribute(number=3),
        "ecc": DeviceAttribute(flag=True),
        "version": DeviceAttribute(version="1.10.0-rc.2"),
        "nic.example.com/rail": DeviceAttribute(number=7),
    }
    texts = {name: DeviceAttribute(text=value) for name, value in more.items()}
    return Device(attributes={**attributes, **texts}, capacity={"memory": DeviceCapacity(value="80Gi")})


@pytest.mark.parametrize(("expression", "matches"), [
    (f'device.driver == "{DRIVER}"', True),
    (f'{A}.model == "a100"', True),
    (f"{A}[\"model\"] == 'a100'", True),
    (f"{A}.index > 2.5 && {A}.ecc", True),
    (f'{A}.index == "3"', False),
    ("device.allowMultipleAllocations", False),
    ('device.attributes["nic.example.com"].rail == 7', True),
    ('device.attributes["none.example.com"].rail == 7', False),
    ('has(device.attributes["none.example.com"].rail)', False),
    ('!has(device.attributes["none.example.com"].rail)', True),
    ('device.attributes["none.example.com"].rail == 7 || true', True),
    (f'{A}.?serial.orValue("none") == "none"', True),
    (f'{C}.memory.compareTo(quantity("80Gi")) == 0', True),
    (f'{C}.memory == quantity("81920Mi")', True),
    (f'{C}.memory.isGreaterThan(quantity("0.5e2Gi"))', False),
    (f"{C}.memory.isGreaterThan({A}.version)", False),
    (f'{A}.version.isLessThan(semver("1.10.0"))', True),
    (f'{A}.version.isGreaterThan(semver("1.10.0-rc.1"))', True),
    (f"{A}.version.major() == 1 && {A}.version.minor() == 10 && {A}.version.patch() == 0", True),
    ('isQuantity("1Gi") && !isQuantity("one") && isSemver("1.2.3") && !isSemver("1.2")', True),
    *((f'quantity("{text}").sign() == {sign}', True) for text, sign in (("-1m", -1), ("0", 0), ("2Ki", 1))),
    ('quantity("2k").isInteger() && !quantity("1500m").isInteger() && quantity("2k").asInteger() == 2000', True),
    ('quantity("1500m").asInteger() == 1', False),
    ('quantity("1500m").asApproximateFloat() == 1.5', True),
    ('semver("1.2.3").isLessThan(semver("1.2.3")) || quantity("1").isGreaterThan(quantity("1"))', False),
    (f'cel.bind(a, {A}, a.model == "a100" && a.ecc)', True),
    (f'["a100", "h100"].exists(m, m == {A}.model)', True),
    (f"{A}.index / 0 == 1", False),
    (f"{A}.index", False),
])  # fmt: skip
def test_what_an_expression_says(expression: str, *, matches: bool) -> None:
    """An error counts as no: kube-scheduler allocates nothing then, either."""
    assert Selector(expression).matches(DRIVER, device()) is matches


@pytest.mark.parametrize(("expression", "why"), [
    ("device.driver ==", "cannot be evaluated"),
    (f'sets.contains(["a100"], [{A}.model])', "cannot be evaluated"),
    ('ip("10.0.0.1").family() == 4', "cannot be evaluated"),
    ("node.name == 'a'", "cannot be evaluated"),
    (f'{A}.model == "{"x" * 11_000}"', "too long"),
    ("[1].all(a, [2].all(b, [3].all(c, a < b && b < c)))", "too many loops"),
    (f'{A}.model.replace("a", "{"b" * 3000}") == ""', "too long"),
])  # fmt: skip
def test_what_is_left_to_kube_scheduler_says_why(expression: str, why: str) -> None:
    """What is not known is not guessed, and nor is what could cost much."""
    with pytest.raises(UnsupportedError, match=why):
        Selector(expression)


def test_an_expression_that_takes_too_many_steps_is_left_to_kube_scheduler() -> None:
    """The interpreter stops it."""
    numbers = ",".join(map(str, range(250)))
    loops = Selector(f"[{numbers}].all(a, [{numbers}].all(b, a + b >= 0))")
    with pytest.raises(UnsupportedError, match="too many steps"):
        loops.matches(DRIVER, device())


@pytest.mark.parametrize(("expression", "named"), [
    (f'{A}.model == "a" && {C}.memory.isInteger()', {("attributes", DRIVER, "model"), ("capacity", DRIVER, "memory")}),
    (f"'model' in {A}", {("attributes", DRIVER, None)}),
    (f"{A}.exists(k, k == 'model')", {("attributes", DRIVER, None)}),
    (f"{A}.?model.hasValue() && {A}[?'x'].hasValue()", {("attributes", DRIVER, "model"), ("attributes", DRIVER, "x")}),
    ('device.attributes["a" + "b"].x == 1', {("attributes", None, None)}),
    ('device.driver == "x"', set()),
    ('[device].exists(d, d.driver == "x")', {("attributes", None, None), ("capacity", None, None)}),
    ('device["driver"] == "x"', {("attributes", None, None), ("capacity", None, None)}),
])  # fmt: skip
def test_what_an_expression_can_depend_on(expression: str, named: set[cel.Mention]) -> None:
    """Rather too much than too little."""
    assert set(mentions(expression)) == named


def test_devices_that_differ_in_what_is_not_named_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A serial number of their own costs nothing; naming it does, up to a bound."""
    monkeypatch.setattr(cel, "MOST_ANSWERS", 10)
    by_model, by_serial = Selector(f'{A}.model == "a100"'), Selector(f'{A}.serial == "7"')
    devices = [device(serial=str(number)) for number in range(20)]
    assert all(by_model.matches(DRIVER, one) for one in devices)
    assert [by_serial.matches(DRIVER, one) for one in devices[:10]].index(True) == 7
    with pytest.raises(UnsupportedError, match="evaluated for more than 10 different devices"):
        by_serial.matches(DRIVER, devices[10])
    by_serial.drop_answers()
    assert not by_serial.matches(DRIVER, devices[10])


@given(st.integers(0, 2**62), st.sampled_from(["", "k", "M", "Gi", "Ki"]))
def test_quantities_are_those_of_resources(amount: int, suffix: str) -> None:
    """Of whole numbers both readers make the same, however they are written."""
    text = f"{amount % 10_000}{suffix}"
    assert Fraction(quantity_value(text)["quantity"]) == parse(text)
    assert quantity_value(format_quantity(parse(text))) == quantity_value(text)


PARTS = st.lists(st.sampled_from(["0", "1", "10", "2", "a", "rc", "x-1"]), max_size=3)


@given(st.tuples(*[st.integers(0, 12)] * 3), st.tuples(*[st.integers(0, 12)] * 3), PARTS, PARTS)
def test_versions_are_ordered_as_semver_orders_them(
    left: tuple[int, ...], right: tuple[int, ...], before: list[str], after: list[str]
) -> None:
    """Numbers first; a pre-release comes before its release; its parts one by one, numbers before words."""

    def text(release: tuple[int, ...], pre: list[str]) -> str:
        return ".".join(map(str, release)) + ("-" + ".".join(pre) if pre else "")

    def compare(a: list[str], b: list[str]) -> int:
        if not a or not b:
            return (not a) - (not b)
        for one, other in zip(a, b, strict=False):
            if one != other:
                if one.isdigit() and other.isdigit():
                    return 1 if int(one) > int(other) else -1
                if one.isdigit() != other.isdigit():
                    return -1 if one.isdigit() else 1
                return 1 if one > other else -1
        return (len(a) > len(b)) - (len(a) < len(b))

    expected = (left > right) - (left < right) or compare(before, after)
    expression = f'semver("{text(left, before)}").compareTo(semver("{text(right, after)}")) == {expected}'
    assert Selector(expression).matches(DRIVER, device())
    assert semver_value(f"{text(left, before)}+build") == semver_value(text(left, before))


PIECES = st.sampled_from([
    A, C, "device", ".", "[", "]", "(", ")", "{", "}", '"', "'", "model", "memory", "==", "&&", "!", "?", ":", "-",
    "in", "has", "quantity", "semver", "matches", "1", "9223372036854775808", "1e400", "\\", "é", "\0", "all", "x",
    ",", "%", "/",
])  # fmt: skip


@given(st.lists(PIECES, max_size=30).map(" ".join) | st.text(max_size=60))
def test_whatever_is_written_is_an_answer_or_left_to_kube_scheduler(expression: str) -> None:
    """No other exception, and no crash of the interpreter."""
    try:
        answer = Selector(expression).matches(DRIVER, device())
    except UnsupportedError:
        return
    assert answer in {True, False}


@pytest.mark.parametrize("deep", ["(" * 4000 + "1" + ")" * 4000, "!" * 8000 + "true", "-" * 8000 + "1 == 1"])
def test_deep_expressions_do_not_break_the_interpreter(deep: str) -> None:
    """Within the length that the API allows."""
    with suppress(UnsupportedError):
        assert Selector(deep).matches(DRIVER, device()) in {True, False}


def test_a_refused_expression_is_refused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that asks for it costs its cycle nothing after the first one."""
    tried: list[str] = []

    class Counted(Selector):
        def __init__(self, expression: str) -> None:
            tried.append(expression)
            super().__init__(expression)

    monkeypatch.setattr(cel, "Selector", Counted)
    expression = "device.attributes['refused once'"
    for _ in range(3):
        with pytest.raises(UnsupportedError, match="evaluated"):
            cel.selector(expression)
    assert tried == [expression]


@pytest.mark.parametrize("pattern", ["_AMPLIFIERS", "_ACCESS", "_PLAIN", "_DEVICE"])
def test_expressions_are_searched_in_time_that_follows_their_length(pattern: str) -> None:
    """By re2: with unclosed texts Python's engine takes the square of the length, six seconds for a claim of 60 KB."""
    assert type(getattr(cel, pattern)).__module__.startswith("re2")
