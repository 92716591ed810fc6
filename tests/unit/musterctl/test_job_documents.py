"""Manifests are read as kubectl reads them, and written so that it reads them back."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from musterctl.options import documents
from webhook.offline.manifests import as_yaml


def read(folder: Path, text: str) -> list[Any]:
    """The objects of a file with this text."""
    file = folder / "objects.yaml"
    file.write_text(text, encoding="utf-8")
    return list(documents(str(file)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", False), ("y", True), ("On", True), ("NO", False), ("nO", "nO"), ('"no"', "no"), ("~", None),
        ("Null", None), ("010", 8), ("0o10", 8), ("08", 8), ("0x1f", 31), ("0b11", 3), ("1_000", 1000), ("+1", 1),
        ("-0", 0), ("0x", "0x"), ("1e3", 1000), ("1.5e3", 1500), (".5", 0.5), ("1.", 1), ("1_0.5", 10.5),
        ("1e400", "1e400"), (".", "."), ("1:30", "1:30"), ("10:30:15", "10:30:15"), ("2001-01-01", "2001-01-01"),
        ("=", "="), ("_1", "_1"), ("123456789012345678901234567890", 1.2345678901234568e29), ("!!str 1", "1"),
        ("!!binary aGk=", "hi"), ("-017", -15), ("1.5", 1.5), ("n", False), ("Off", False), ("", None),
        ("18446744073709551615", 2**64 - 1), ("-9223372036854775808", -(2**63)), ("1.2.3", "1.2.3"), ("2e30", 2e30),
        ("18446744073709551616", 18446744073709551616), ("36893488147419103233", 36893488147419103232),
    ],
)  # fmt: skip
def test_what_a_text_means(tmp_path: Path, text: str, value: object) -> None:
    """YAML 1.1 as kubectl has it: no numbers of base 60, no dates, and exponents need no dot."""
    assert json.dumps(read(tmp_path, f"v: {text}")[0]["v"]) == json.dumps(value)


def test_keys_become_texts(tmp_path: Path) -> None:
    """A node selector {no: where} asks for the label "false"; 1 and true stay two keys."""
    text = "{no: a, y: b, 1: c, 1.5: d, 1e30: e, 2001-01-01: f}"
    expected = {"false": "a", "true": "b", "1": "c", "1.5": "d", "1e+30": "e", "2001-01-01": "f"}
    assert read(tmp_path, text) == [expected]


def test_documents_and_lists(tmp_path: Path) -> None:
    """Empty documents are nothing; a List is its items; JSON may be indented with tabs; aliases and merges work."""
    assert read(tmp_path, "---\n# nothing\n---\na: &a {b: 1}\nc: {<<: *a}\n---\n") == [{"a": {"b": 1}, "c": {"b": 1}}]
    assert read(tmp_path, "kind: List\nitems: [{a: 1}, {b: 2}]\n") == [{"a": 1}, {"b": 2}]
    assert read(tmp_path, '{\n\t"a": 1\n}\n') == [{"a": 1}]
    assert read(tmp_path, "{a: 1}\n---\n{b: 2}\n") == [{"a": 1}, {"b": 2}]
    assert read(tmp_path, "") == []


@pytest.mark.parametrize(("text", "why"), [
    ("a: [", "in line 2, column 1"),
    ("a: {~: 1}", "a key must be a string, a number or a boolean"),
    ("a: {[b]: 1}", "a key must be a string, a number or a boolean"),
    ("a: &a [*a]", "an alias contains itself"),
    ("a: !!set {b}", "could not determine a constructor for the tag"),
    ("- 1", "expected Kubernetes objects, but found [1]"),
    ("items: [7]", "expected Kubernetes objects, but found 7"),
    ("metadata: []", "expected Kubernetes objects"),
])  # fmt: skip
def test_what_is_no_manifest_is_said(tmp_path: Path, text: str, why: str) -> None:
    """In one sentence that names the file."""
    with pytest.raises(click.ClickException) as raised:
        read(tmp_path, text)
    assert why in raised.value.message
    assert str(tmp_path / "objects.yaml") in raised.value.message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder, and what is no text."""
    for file, why in ((tmp_path / "none.yaml", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(click.ClickException) as raised:
            list(documents(str(file)))
        assert raised.value.message.startswith(f"cannot read {file}: {why}")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(click.ClickException, match="cannot read"):
        list(documents(str(tmp_path / "bytes")))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Texts that kubectl would take for something else get quotes."""
    texts = [
        "y",
        "1e3",
        "0o10",
        "null",
        "no",
        "~",
        "10:30",
        "=",
        "<<",
        "1_000",
        ".5",
        "2001-01-01",
        "",
        "x: y",
        "é",
        "a\nb\n",
    ]
    content = {"texts": texts, "no": 1, "1": 2, "numbers": [1, 1.5, True, None]}
    written = as_yaml(content)
    assert read(tmp_path, written) == [content]
    assert "- 'y'\n- '1e3'\n- '0o10'\n- 'null'\n- 'no'\n- '~'\n" in written
