"""The tables of the history. `migrations` has the steps that make them; a test holds both to be the same."""

from typing import Final

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

NOTES: Final = Table(
    "notes", METADATA, Column("key", String(63), primary_key=True), Column("value", Text, nullable=False)
)
"""What the recorder remembers of itself: how far it has read, and up to which day usage is folded."""

VERSIONS: Final = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""Alembic's own table: the last step that was taken."""

GANGS: Final = Table(
    "gangs",
    METADATA,
    Column("id", String(512), primary_key=True),
    Column("namespace", String(63), nullable=False),
    Column("name", String(253), nullable=False),
    Column("kind", String(63), nullable=False),
    Column("queue", String(253), nullable=False),
    Column("user", String(512), nullable=False),
    Column("submitted", BigInteger, nullable=False),
    Column("started", BigInteger),
    Column("ended", BigInteger),
    Column("state", String(32), nullable=False),
    Column("owner", String(63), nullable=False),
    Column("saved", BigInteger),
    Index("gangs_by_name", "namespace", "name"),
    Index("gangs_by_submission", "submitted"),
    Index("gangs_by_end", "ended"),
)

RUNS: Final = Table(
    "runs",
    METADATA,
    Column("uid", String(512), primary_key=True),
    Column("gang", String(512), nullable=False),
    Column("submitted", BigInteger, nullable=False),
    Column("ended", BigInteger),
    Column("asked", Text, nullable=False),
    Column("seen", Text, nullable=False),
    Index("runs_by_gang", "gang"),
    Index("runs_by_end", "ended"),
)

HOLDINGS: Final = Table(
    "holdings",
    METADATA,
    Column("pod", String(63), primary_key=True),
    Column("name", String(253), nullable=False),
    Column("gang", String(512), nullable=False),
    Column("run", String(512), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("node", String(253), nullable=False),
    Column("amounts", Text, nullable=False),
    Column("bound", BigInteger, nullable=False),
    Column("ran_from", BigInteger),
    Column("ended", BigInteger),
    Column("reason", String(16), nullable=False),
    Column("saved", BigInteger),
    Column("within", BigInteger, nullable=False),
    Index("holdings_by_gang", "gang", "bound"),
    Index("holdings_by_end", "ended"),
)

HAPPENINGS: Final = Table(
    "happenings",
    METADATA,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("gang", String(512), nullable=False),
    Column("run", String(512), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("what", String(32), nullable=False),
    Column("subject", String(253), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
    Column("nodes", Text, nullable=False),
    UniqueConstraint("run", "epoch", "what", "subject", name="happenings_once"),
    Index("happenings_by_gang", "gang", "at"),
    Index("happenings_by_time", "at"),
)
"""At least once becomes once: a second row of the same run, epoch, what and subject is not taken."""

GAPS: Final = Table(
    "gaps",
    METADATA,
    Column("since", BigInteger, primary_key=True, autoincrement=False),
    Column("until", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
)

DAYS: Final = Table(
    "days",
    METADATA,
    Column("day", BigInteger, nullable=False),
    Column("namespace", String(63), nullable=False),
    Column("queue", String(253), nullable=False),
    Column("user", String(512), nullable=False),
    Column("kind", String(63), nullable=False),
    Column("name", String(253), nullable=False),
    Column("resource", String(317), nullable=False),
    Column("asked", String(64), nullable=False),
    Column("held", String(64), nullable=False),
    Column("used", String(64), nullable=False),
    Column("lost", String(64), nullable=False),
    PrimaryKeyConstraint("day", "namespace", "queue", "user", "kind", "name", "resource"),
)
"""Usage of days whose detail is gone. Amounts are decimal texts: bytes times milliseconds go beyond 64 bits."""

FOLDS: Final = Table(
    "folds", METADATA, Column("namespace", String(63), primary_key=True), Column("until", BigInteger, nullable=False)
)
"""Up to when namespaces that held more than their share are folded, beyond the days that are folded for all."""
