"""The command line of the controller process: options that differ from pod to pod, and its settings."""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.settings import ControllerSettings
from muster.process import settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A field for each flag; their help is in the table below."""

    kubeconfig: str
    status_host: str
    report_host: str
    settings: ControllerSettings


def parse(argv: Sequence[str] | None = None) -> Options:
    """Reads the arguments, by default those of this process; mistakes end the process with code 2."""
    parser = settings.parser_of("controller", "Muster's controller: whether a pod exists.")
    add = parser.add_argument
    add("--kubeconfig", default="", help="file to find the API server with; empty: in-cluster")
    add("--status-host", default="127.0.0.1", help="address of the status port [default: %(default)s]")
    add("--report-host", default="0.0.0.0", help="address of the report port [default: %(default)s]")  # noqa: S104 - for pods
    return Options(**settings.parse(parser, argv, ControllerSettings))
