"""Every command of the documentation is run, page by page, as it stands there; those that cannot be are in a table."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Final

import pytest
import yaml
from docs_pages import PAGES, Page
from documentation import PAGES as FILES
from documentation import REPOSITORY, commands, documents, text_of
from planes import PLANES
from runbook import without_runbook

from extender.planner.api import defaults
from muster.kube.client import Client
from musterctl.plane import binaries
from musterctl.plane.plane import Plane
from musterctl.plane.state import API_SERVER, ETCD

pytestmark = [pytest.mark.plane, pytest.mark.long]
_PATIENCE_S: Final = 60
_SAVED: Final = {
    "Queue": "vision-queue.yaml",
    "Namespace": "vision-namespace.yaml",
    "RoleBinding": "vision-roles.yaml",
    "ClusterRoleBinding": "vision-roles.yaml",
}
_CLEAN: Final = "kubectl delete vcjob,trainjob,jobs.batch,pods --all"


def onboarding() -> dict[str, str]:
    """The files that docs/operations.md has an administrator save for a new team."""
    found: dict[str, str] = {}
    for document in documents(text_of("operations.md")):
        if file := _SAVED.get((yaml.safe_load(document) or {}).get("kind", "")):
            found[file] = f"{found.get(file, '')}---\n{document}"
    return found


NOT_RUN: Final = {
    "make *": "it builds, tests or measures for minutes, and CI runs it",
    "pip *": "it changes what is installed here; tests/plane/test_wheel.py and the plugins' tests install",
    "python -m tests.bench *": "it measures for minutes",
    "python -m webhook": "the chart starts it, with arguments: tests/plane/test_chart_installed.py",
    "python -m extender": "the same",
    "python -m controller": "the same",
    "muster restart extender-b": "a part of another plane: tests/plane/test_pools.py",
    "muster restart extender": "the extender is another one then: tests/plane/test_running_config.py",
    "muster up --kubernetes 1.32": "it builds Kubernetes for ten minutes; tests/plane/test_local_up.py has the option",
    "muster up --pool b": "another plane: tests/plane/test_pools.py",
    "muster up --shared-scheduler": "another plane: tests/plane/test_shared_scheduler.py",
    "muster up --kubeconfig FILE *": "another plane: tests/plane/test_local_attach.py",
    "muster up --provider kind*": "it needs a container engine: tests/plane/test_kind.py",
    "helm install --take-ownership": "half a command; docs/migrate.md has it whole",
    "helm test muster *": "it needs pods that really run",
    "kubectl -n muster-system port-forward *": "it needs pods that really run",
    "kubectl -n muster-system rollout restart *": "it needs the chart's pods",
    "kube-scheduler --config=scheduler.yaml": "it runs for ever: tests/plane/test_local_attach.py",
    "kubectl get podgroups.scheduling.k8s.io": "it needs a feature gate: tests/plane/test_native_deciders.py has it",
    "kube-scheduler decides, *": "a message, no command",
    "kubectl create -f": "half a command",
    "kubectl run -it": "half a command",
    "muster job run": "half a command",
    "muster queue explain": "half a command",
    "muster queue update": "half a command",
    "muster queue view": "half a command",
    "muster shape --native": "half a command",
    "muster train run": "half a command",
    "kubectl run shell *": "it needs pods that really run",
    "muster run --gpus 1 *": "the same",
    "muster logs *": "it needs pods that really run: tests/plane/test_my_work.py",
    "muster train logs *": "the same",
}
"""Why a command is not run; one that ends with * stands for all that begin so."""

GO_ON: Final = (
    "kubectl get placements -w", "muster queue list -w", "muster ps -w", "muster train train.py *",
    "muster train attach NAME", "muster web"
)  # fmt: skip
"""Commands that do not end by themselves here: they are ended when they have said something."""

WRITTEN: Final = {
    "planning.yaml": defaults(),
    "groups.yaml": "resourceGroups: [{resourceGroup: gpu, labels: {pool: gpu}}]\n",
    "train.py": "print(1)\n",
    **onboarding(),
}
"""Files that are there."""

FAIL: Final = {
    "muster job delete train other": "one is missing",
    "muster explain job lama-70b": "a name that does not exist",
    "sed *": "mistakes that are refused",
    "kubectl auth can-i create pods --namespace default *": "the answer is no",
}
"""Commands that end with 1, as their pages say."""

END: Final = "muster down"
"""It ends the plane that all share, so it is run when all else has been."""
LAST: Final = "quickstart.md"


def among(command: str, table: Mapping[str, str] | tuple[str, ...]) -> str:
    """The entry of a table that a command is meant by; empty if there is none."""
    return next(
        (each for each in table if (command.startswith(each[:-1]) if each.endswith("*") else command == each)), ""
    )


class Empty(Plane):
    """A cluster in which nobody has put anything."""

    def _install(self, client: Client, report: Callable[[str], None]) -> None:
        """Nothing: helm does."""


@dataclass(frozen=True)
class Shell:
    """Runs what the pages say."""

    folder: Path
    """Where commands run."""
    variables: Mapping[str, str]
    charts: Path
    """The kubeconfig of the cluster that helm has."""

    def start(self, command: str, *, chart: bool = False) -> subprocess.Popen[str]:
        """A command in the shell, as a process group, in one of the two clusters."""
        environment = {**self.variables, **({"KUBECONFIG": str(self.charts)} if chart else {})}
        return subprocess.Popen(
            ["bash", "-o", "pipefail", "-ec", command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str, *, chart: bool = False, code: int = 0) -> str:
        """What a command says, which must end with that code."""
        process = self.start(command, chart=chart)
        try:
            said, _ = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            _end(process)
            pytest.fail(f"{command}: it does not end")
        assert process.returncode == code, f"{command}\nended with {process.returncode}, not {code}:\n{said}"
        return said

    def first_line(self, command: str) -> str:
        """What a command says first, which goes on and is ended then."""
        process = self.start(command)
        assert process.stdout is not None
        late = Timer(_PATIENCE_S, _end, [process])
        late.start()
        try:
            return process.stdout.readline()
        finally:
            late.cancel()
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Shell]:
    """A shell for all pages; planes that it leaves are ended."""
    folder = tmp_path_factory.mktemp("docs")
    with Empty(tmp_path_factory.mktemp("charts"), {ETCD, API_SERVER}) as charts:
        pytestconfig.stash[PLANES].append(charts)
        programs, work, state = folder / "bin", folder / "work", folder / "state" / "muster" / "default"
        for each in (programs, work):
            each.mkdir()
        for name in ("examples", "charts", "docs"):
            (work / name).symlink_to(REPOSITORY / name)
        for name in ("pki", "plane.json"):
            (work / name).symlink_to(state / name)
        for name, content in WRITTEN.items():
            (work / name).write_text(content)
        (programs / "kubectl").symlink_to(charts.kubectl_program())
        (programs / "helm").symlink_to(binaries.helm())
        variables = {
            **os.environ,
            "PATH": os.pathsep.join(map(str, (programs, Path(sys.executable).parent, os.environ["PATH"]))),
            "XDG_STATE_HOME": str(folder / "state"),
            "KUBECONFIG": str(state / "admin.kubeconfig"),
        }
        one = Shell(work, variables, charts.kubeconfig)
        yield one
        pytestconfig.stash[PLANES].remove(charts)
        if (state / "plane.json").exists():
            one.run("muster down")


def _ordered() -> list[str]:
    own = [page for page in FILES if page not in PAGES and commands(text_of(page))]
    named = list(PAGES)
    place = named.index("install.md")
    return [*named[:place], *own, *named[place:]]


@pytest.mark.parametrize("name", _ordered())
def test_each_command_of_a_page(name: str, shell: Shell) -> None:
    """It ends with 0, unless the page says otherwise."""
    page = PAGES.get(name, Page())
    for line in page.setup:
        shell.run(line, chart=page.chart)
    for _, command in commands(without_runbook(text_of(name))):
        if among(command, NOT_RUN) or command == END:
            continue
        chart = page.chart or command.startswith("helm ")
        if earlier := page.before.get(command):
            shell.run(earlier, chart=chart)
        meant = command
        for word, value in page.words.items():
            meant = meant.replace(word, value)
        if among(command, GO_ON):
            assert shell.first_line(meant)
        else:
            shell.run(meant, chart=chart, code=1 if among(command, FAIL) else 0)
    for line in page.after:
        shell.run(line, chart=page.chart)
    if name == LAST:
        shell.run(END)
    elif name in PAGES and not page.chart:
        shell.run(_CLEAN)


def test_the_tables_have_nothing_that_is_gone() -> None:
    """Each entry is a command of some page, and each page that has a setup has commands."""
    every = {name: [each.text for each in commands(text_of(name))] for name in FILES}
    known = [command for page in every.values() for command in page]
    for table in (NOT_RUN, GO_ON, FAIL):
        assert {among(command, table) for command in known} >= {*table}
    assert list(PAGES)[-1] == LAST
    assert END in every[LAST]
    for name, page in PAGES.items():
        assert every[name], name
        assert {*page.before} <= {*every[name]}, name
        assert all(any(word in command for command in every[name]) for word in page.words), name
