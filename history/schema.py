"""The tables of the history. `migrations` contains the steps that create the same tables; a test compares the two."""

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA: Final = MetaData()
_ID: Final = BigInteger().with_variant(Integer, "sqlite")


def _texts(**chars: int) -> Iterator[Column[str]]:
    """Yield a text column for each name, with its maximum number of characters."""
    return (Column(name, String(most), nullable=False) for name, most in chars.items())


def _columns(type_: Any, *names: str, nullable: bool = False) -> Iterator[Column[Any]]:
    """Yield a column of the given type for each name."""
    return (Column(name, type_, nullable=nullable) for name in names)


def _charge() -> Iterator[Column[str]]:
    """Yield the columns for the queue and user charged for a period; in rows of earlier versions, they are empty."""
    yield Column("queue", String(253), nullable=False, server_default="")
    yield Column("user", String(512), nullable=False, server_default="")
    yield Column("moves", Text, nullable=False, server_default="[]")


NOTES: Final = Table(
    "notes", METADATA, Column("key", String(63), primary_key=True), Column("value", Text, nullable=False)
)
"""Notes of the recorder: how far it has read, and up to which day usage is aggregated."""

VERSIONS: Final = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""Alembic's own table with the last migration step."""

GANGS: Final = Table(
    "gangs",
    METADATA,
    Column("id", String(512), primary_key=True),
    *_texts(namespace=63, name=253, kind=63, queue=253, user=512, state=32, owner=63),
    *_columns(BigInteger, "submitted"),
    *_columns(BigInteger, "started", "ended", "saved", nullable=True),
    Index("gangs_by_name", "namespace", "name"),
    Index("gangs_by_submission", "submitted"),
    Index("gangs_by_end", "ended"),
)

RUNS: Final = Table(
    "runs",
    METADATA,
    Column("uid", String(512), primary_key=True),
    *_texts(gang=512),
    *_columns(BigInteger, "submitted"),
    *_columns(BigInteger, "ended", nullable=True),
    *_columns(Text, "asked", "seen"),
    *_charge(),
    Index("runs_by_gang", "gang"),
    Index("runs_by_end", "ended"),
)

HOLDINGS: Final = Table(
    "holdings",
    METADATA,
    Column("pod", String(63), primary_key=True),
    *_texts(name=253, gang=512, run=512, node=253, reason=16),
    *_columns(Text, "amounts"),
    *_columns(BigInteger, "epoch", "bound", "within"),
    *_columns(BigInteger, "ran_from", "ended", "saved", nullable=True),
    *_charge(),
    Index("holdings_by_gang", "gang", "bound"),
    Index("holdings_by_end", "ended"),
)

GANG_EVENTS: Final = Table(
    "happenings",
    METADATA,
    Column("id", _ID, primary_key=True, autoincrement=True),
    *_texts(gang=512, run=512, what=32, subject=253),
    *_columns(BigInteger, "epoch", "at"),
    *_columns(Text, "text", "nodes"),
    UniqueConstraint("run", "epoch", "what", "subject", name="happenings_once"),
    Index("happenings_by_gang", "gang", "at"),
    Index("happenings_by_time", "at"),
)
"""Each event is stored once, even if it is observed repeatedly. A second row with the same run, epoch, kind and subject
is ignored."""

GAPS: Final = Table(
    "gaps",
    METADATA,
    Column("since", BigInteger, primary_key=True, autoincrement=False),
    *_columns(BigInteger, "until"),
    *_columns(Text, "text"),
)

DAYS: Final = Table(
    "days",
    METADATA,
    *_columns(BigInteger, "day"),
    *_texts(namespace=63, queue=253, user=512, kind=63, name=253, resource=317),
    *_texts(asked=64, held=64, used=64, lost=64),
    PrimaryKeyConstraint("day", "namespace", "queue", "user", "kind", "name", "resource"),
)
"""Usage of aggregated days. Amounts are decimal texts, because byte-milliseconds exceed 64 bits."""

FOLDS: Final = Table(
    "folds", METADATA, Column("namespace", String(63), primary_key=True), Column("until", BigInteger, nullable=False)
)
"""Times until which the usage of namespaces is aggregated. The table contains only namespaces that exceeded their share
of the store. Their usage is aggregated further than the usage of all other namespaces."""
