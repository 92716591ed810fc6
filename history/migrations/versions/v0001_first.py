"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    key = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    big, text = sa.BigInteger, sa.Text
    op.create_table(
        "notes",
        sa.Column("key", sa.String(63), primary_key=True),
        sa.Column("value", text, nullable=False),
    )
    op.create_table(
        "gangs",
        sa.Column("id", sa.String(512), primary_key=True),
        sa.Column("namespace", sa.String(63), nullable=False),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("kind", sa.String(63), nullable=False),
        sa.Column("queue", sa.String(253), nullable=False),
        sa.Column("user", sa.String(512), nullable=False),
        sa.Column("submitted", big, nullable=False),
        sa.Column("started", big),
        sa.Column("ended", big),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("owner", sa.String(63), nullable=False),
        sa.Column("saved", big),
    )
    op.create_index("gangs_by_name", "gangs", ["namespace", "name"])
    op.create_index("gangs_by_submission", "gangs", ["submitted"])
    op.create_index("gangs_by_end", "gangs", ["ended"])
    op.create_table(
        "runs",
        sa.Column("uid", sa.String(512), primary_key=True),
        sa.Column("gang", sa.String(512), nullable=False),
        sa.Column("submitted", big, nullable=False),
        sa.Column("ended", big),
        sa.Column("asked", text, nullable=False),
        sa.Column("seen", text, nullable=False),
    )
    op.create_index("runs_by_gang", "runs", ["gang"])
    op.create_index("runs_by_end", "runs", ["ended"])
    op.create_table(
        "holdings",
        sa.Column("pod", sa.String(63), primary_key=True),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("gang", sa.String(512), nullable=False),
        sa.Column("run", sa.String(512), nullable=False),
        sa.Column("epoch", big, nullable=False),
        sa.Column("node", sa.String(253), nullable=False),
        sa.Column("amounts", text, nullable=False),
        sa.Column("bound", big, nullable=False),
        sa.Column("ran_from", big),
        sa.Column("ended", big),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("saved", big),
        sa.Column("within", big, nullable=False),
    )
    op.create_index("holdings_by_gang", "holdings", ["gang"])
    op.create_index("holdings_by_end", "holdings", ["ended"])
    op.create_table(
        "happenings",
        sa.Column("id", key, primary_key=True, autoincrement=True),
        sa.Column("gang", sa.String(512), nullable=False),
        sa.Column("run", sa.String(512), nullable=False),
        sa.Column("epoch", big, nullable=False),
        sa.Column("what", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(253), nullable=False),
        sa.Column("at", big, nullable=False),
        sa.Column("text", text, nullable=False),
        sa.Column("nodes", text, nullable=False),
        sa.UniqueConstraint("run", "epoch", "what", "subject", name="happenings_once"),
    )
    op.create_index("happenings_by_gang", "happenings", ["gang", "at"])
    op.create_index("happenings_by_time", "happenings", ["at"])
    op.create_table(
        "gaps",
        sa.Column("since", big, primary_key=True, autoincrement=False),
        sa.Column("until", big, nullable=False),
        sa.Column("text", text, nullable=False),
    )
    names = {"namespace": 63, "queue": 253, "user": 512, "kind": 63, "name": 253, "resource": 317}
    op.create_table(
        "days",
        sa.Column("day", big, nullable=False),
        *(sa.Column(name, sa.String(length), nullable=False) for name, length in names.items()),
        *(sa.Column(name, sa.String(64), nullable=False) for name in ("asked", "held", "used", "lost")),
        sa.PrimaryKeyConstraint("day", *names),
    )
