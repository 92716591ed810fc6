"""`muster config …`: configuration for processes that users run themselves; `muster render`: the chart without helm."""

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import yaml

from extender.planner.api import defaults, report_of
from muster.api.muster.pools import DEFAULT_POOL, LONGEST_NAME, is_pool_name
from muster.api.names import EXTENDER_HOST
from muster.process.settings import SettingsError
from musterctl import settings, shards
from musterctl.chart import files
from musterctl.chart.files import ExtenderAt
from musterctl.chart.files import render as rendered
from musterctl.options import existing_name_option, release_options
from musterctl.plane import state
from musterctl.plane.pki import Pki

_ENDINGS = (".yaml", ".yml", ".conf")
_SCHEDULER = re.compile(r"/kube-scheduler:(?P<tag>v[0-9.]+)")


@click.group()
def config() -> None:
    """Prints and checks the configuration of components you run."""


@config.command()
@click.option(
    "--extender-url", help="URL of the extender.  [default: the local control plane's, else the default port]"
)
@click.option(
    "--extender-tls-folder",
    help="For an https URL: folder with kube-scheduler's client.crt, client.key and ca.crt."
    f" [default: the local control plane's, else {files.DEFAULT_TLS_FOLDER}]",
)
@click.option(
    "--extender-server-name",
    default=EXTENDER_HOST,
    show_default=True,
    help="For an https URL: a name in the extender's certificate.",
)
@click.option("--kubeconfig", default="", help="The scheduler's kubeconfig.  [default: in-cluster]")
@click.option(
    "--shared",
    is_flag=True,
    help="For a scheduler that also serves other pods: it calls Muster only for pods with the marker resources.",
)
@click.option(
    "--pool",
    default=DEFAULT_POOL,
    help="Node pool that the scheduler plans (docs/autoscaling.md).  [default: the nodes in no other pool]",
)
@existing_name_option
def scheduler(
    extender_url: str | None,
    extender_tls_folder: str | None,
    extender_server_name: str,
    kubeconfig: str,
    pool: str,
    name: str,
    *,
    shared: bool,
) -> None:
    """Prints the configuration of a kube-scheduler for Muster."""
    if pool and (shared or not is_pool_name(pool)):
        why = "not with --shared" if shared else f"lower-case letters, digits and '-', at most {LONGEST_NAME}"
        raise click.UsageError(f"--pool {pool}: {why}")
    folder = state.folder_of(name)
    plane = state.load(folder)
    at = ExtenderAt(server_name=extender_server_name)
    if plane is not None:
        scheme = "https" if plane.options.extender_tls else "http"
        at = at._replace(url=f"{scheme}://127.0.0.1:{plane.ports['extender']}", folder=str(Pki(folder).extender_folder))
    if extender_url is not None:
        at = at._replace(url=extender_url)
    if extender_tls_folder is not None:
        at = at._replace(folder=extender_tls_folder)
    content = files.kube_scheduler(kubeconfig=kubeconfig, extender=at, shared=shared, pool=pool)
    click.echo(yaml.safe_dump(content, sort_keys=False), nl=False)


@config.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
def check(file: Path) -> None:
    """Checks a file of settings, or a planner's configuration.

    FILE is a file that `print-defaults PROCESS` prints, or a file for the extender's setting `config`, e.g. Volcano's
    volcano-scheduler.conf. FILE may also be a ConfigMap that contains such files, as printed by kubectl, or a
    SchedulingShard of KAI-Scheduler. FILE may contain several documents; `-` reads standard input. The output lists
    errors first, and the exit code is then 1. The output also lists settings that have another meaning in their own
    project, and settings without effect.
    """
    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file}: it is not UTF-8 text: {error}") from error
    found = [_checked(name, each) for name, each in _files(text)]
    if not any(lines for lines, _ in found):
        click.echo("all settings have their documented effect")
    for lines, _ in found:
        for line in lines:
            click.echo(line)
    sys.exit(1 if any(wrong for _, wrong in found) else 0)


def _files(text: str) -> list[tuple[str, str]]:
    """Return each document in a text and each file in a ConfigMap, with a name; a single document has an empty name."""
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except (yaml.YAMLError, ValueError, RecursionError):
        return [("", text)]  # the check of the file reports the error
    listed = [part for each in documents for part in _parts(each)]
    if listed == documents and len(documents) <= 1 and not any(_is(each, "ConfigMap") for each in listed):
        return [("", text)]
    found: list[tuple[str, str]] = []
    for number, each in enumerate(listed, 1):
        if _is(each, "ConfigMap"):
            found += _files_of(each)
        else:
            found.append((f"document {number}", yaml.safe_dump(each)))
    return found


def _parts(document: Any) -> list[Any]:
    """Return the objects in a List, in which kubectl prints several objects; return any other document itself."""
    items = document.get("items") if _is(document, "List") else None
    return items if isinstance(items, list) and items else [document]


def _files_of(config_map: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the files in a ConfigMap with their names; a ConfigMap may also contain other data."""
    data = config_map.get("data")
    files = [(str(name), str(each)) for name, each in data.items()] if isinstance(data, dict) else []
    files = [each for each in files if each[0].endswith(_ENDINGS)] or files
    if not files:
        raise click.ClickException("this ConfigMap has no data")
    return files


def _is(document: Any, kind: str, group: str = "") -> bool:
    """Return True for an object of this kind and, if given, of this group (with a trailing slash)."""
    return (
        isinstance(document, dict)
        and document.get("kind") == kind
        and str(document.get("apiVersion", "")).startswith(group)
    )


def _checked(name: str, text: str) -> tuple[list[str], bool]:
    """Check a file; return the lines of the report, and True if the file has errors."""
    try:
        process = settings.process_of(text)
        if process:
            settings.check_settings(process, text)
            return [], False
    except SettingsError as error:
        lines, wrong = [f"error: {each}" for each in error.errors], True
    else:
        lines, wrong = _of_a_planner(text)
    return [f"{name}: {line}" if name else line for line in lines], wrong


def _of_a_planner(text: str) -> tuple[list[str], bool]:
    """Check a planner's configuration, or an object that may contain one; return the lines, and True for errors."""
    with suppress(yaml.YAMLError, ValueError, RecursionError):
        document = yaml.safe_load(text)
        if _is(document, shards.KIND, shards.GROUP):
            return shards.lines(document)
        if isinstance(document, dict) and {"apiVersion", "kind"} <= document.keys():
            what = (
                f"this is a {document['kind']} of {document['apiVersion']}, which contains no configuration of Muster"
            )
            known = f"a file of settings, a planner's configuration, a ConfigMap with such files, or a {shards.KIND}"
            return [f"error: {what}; give {known}"], True
    report = report_of(text)
    return list(report.lines()), bool(report.errors)


@config.command("print-defaults")
@click.argument("process", type=click.Choice(["scheduler", *settings.PROCESSES]), default="scheduler")
def print_defaults(process: str) -> None:
    """Prints all settings of a process with their defaults.

    The output is a file for the process's --settings. For the process `scheduler`, which is the default, the file has
    the actions and plugins of the planner.
    """
    click.echo(defaults() if process == "scheduler" else settings.defaults(process), nl=False)


@click.command()
@release_options
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A value of the chart; may be given several times."
)
@click.option("--set-file", "files", multiple=True, metavar="NAME=FILE", help="A value of the chart, from a file.")
def render(
    namespace: str, values: tuple[Path, ...], settings: tuple[str, ...], files: tuple[str, ...], kubernetes_version: str
) -> None:
    """Prints the manifests of the Helm chart.

    Apply the manifests with `kubectl apply --server-side -f -`.
    """
    arguments = [*(f"--set={each}" for each in settings), *(f"--set-file={each}" for each in files)]
    if kubernetes_version:
        arguments.append(f"--kube-version={kubernetes_version}")
    text = rendered(namespace=namespace, values=values, arguments=arguments)
    click.echo(text, nl=False)
    guessed = None if kubernetes_version or _names_tag(values, settings) else _SCHEDULER.search(text)
    if guessed:
        click.echo(
            f"Note: kube-scheduler {guessed['tag']} is used, helm's default without a cluster. It must not be "
            "newer than the API server: give --kubernetes-version, or set scheduler.image.tag.",
            err=True,
        )


def _names_tag(values: tuple[Path, ...], settings: tuple[str, ...]) -> bool:
    """Return True if the user's values choose a version of kube-scheduler."""
    found = any(each.startswith("scheduler.image.tag=") for each in settings)
    for path in values:
        scheduler = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("scheduler") or {}
        found |= bool((scheduler.get("image") or {}).get("tag"))
    return found
