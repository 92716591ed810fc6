"""The command line of the recorder, and the recorder's settings file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from history.model import MEMORY
from muster.api import names
from muster.process import settings
from muster.process.settings import Port, Settings


class HistorySettings(Settings, frozen=True, kw_only=True):
    """The settings of the recorder."""

    KIND: ClassVar[str] = "HistoryConfiguration"

    status_port: Port = 8084
    """HTTP port of /metrics, /healthz and /readyz."""
    database: str = ""
    """URL of the store: sqlite:////folder/history.db or postgresql://user@host:5432/database. If the field is empty,
    the data is kept in memory, and is lost when the process ends."""
    durable: bool = True
    """Whether the store outlives the pod; false if its volume is deleted with the pod (metric
    `muster_history_durable`)."""
    database_file: str = ""
    """File that contains the store's URL, for a URL with a password."""
    keep_days: Annotated[int, Meta(ge=1, le=36500)] = 90
    """Number of days for which every gang and each of its members is stored. The data of older days is aggregated into
    usage per day."""
    keep_usage_days: Annotated[int, Meta(ge=1, le=36500)] = 1100
    """Number of days for which usage per day is kept; the default is three years."""
    max_megabytes: Annotated[int, Meta(ge=16, le=10_000_000)] = 1024
    """Size of the store in megabytes above which the oldest days of the largest namespaces are aggregated early."""
    publish: bool = True
    """Whether to publish the usage of each queue this month, this week and today in the ConfigMap muster-usage, in the
    namespace of the Lease, for budgets."""
    lease_name: str = names.HISTORY_LEASE
    """Name of the Lease; only the recorder that holds the Lease writes."""
    lease_namespace: str = names.SYSTEM_NAMESPACE
    """Namespace of the Lease and of the ConfigMap `muster-usage`."""
    lease_duration_s: Annotated[float, Meta(ge=1, le=3600)] = field(name="leaseDuration", default=15.0)
    """Seconds after which a recorder in another pod takes over from a recorder that has failed. A recorder that
    restarts in its own pod continues at once."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level of log entries that are written, as JSON to standard error."""

    def problems(self) -> Iterator[str]:
        """Yield conflicting settings."""
        if self.database and self.database_file:
            yield "databaseFile: cannot be combined with database, because both name the store"
        if self.keep_usage_days < self.keep_days:
            yield "keepUsageDays: must be at least keepDays, because older days only have usage per day"

    def url(self) -> str:
        """Return the URL of the store. Raises OSError if the file with the URL cannot be read."""
        if self.database_file:
            return Path(self.database_file).read_text(encoding="utf-8").strip()
        return self.database or MEMORY


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderOptions:
    """The values of the recorder's command line."""

    kubeconfig: str
    status_host: str
    settings: HistorySettings


def parse(argv: Sequence[str] | None = None) -> RecorderOptions:
    """Parse the arguments, by default the process's own; errors end the process with code 2."""
    parser = settings.parser_of("history", "Muster's recorder: the events of every gang, and the usage of every user.")
    parser.add_argument("--status-host", default="127.0.0.1", help="address of the status port [default: %(default)s]")
    return RecorderOptions(**settings.parse(parser, argv, HistorySettings))
