"""Schema change: adds the time until which each namespace is aggregated, and an index of each gang's last start."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and the index."""
    op.create_table(
        "folds",
        sa.Column("namespace", sa.String(63), primary_key=True),
        sa.Column("until", sa.BigInteger, nullable=False),
    )
    op.drop_index("holdings_by_gang", "holdings")
    op.create_index("holdings_by_gang", "holdings", ["gang", "bound"])
