"""Schema change: adds queue and user to the rows of runs and of held nodes, and namespaces to gangs' identities."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns with the present queue and user of each gang, and prefix the gang's identity with its namespace."""
    for table in ("runs", "holdings"):
        op.add_column(table, sa.Column("queue", sa.String(253), nullable=False, server_default=""))
        op.add_column(table, sa.Column("user", sa.String(512), nullable=False, server_default=""))
        op.add_column(table, sa.Column("moves", sa.Text, nullable=False, server_default="[]"))
    of_gang = "(SELECT gangs.namespace || '/' || gangs.id FROM gangs WHERE gangs.id = {0}.gang)"
    for table in ("runs", "holdings", "happenings"):
        op.execute(f"UPDATE {table} SET gang = {of_gang.format(table)} WHERE gang IN (SELECT id FROM gangs)")  # noqa: S608
    op.execute("UPDATE gangs SET id = namespace || '/' || id")
    op.execute("UPDATE gangs SET queue = 'default' WHERE queue = ''")
    for table in ("runs", "holdings"):
        charge = ", ".join(
            f"{column} = (SELECT gangs.{column} FROM gangs WHERE gangs.id = {table}.gang)"  # noqa: S608
            for column in ("queue", '"user"')
        )
        op.execute(f"UPDATE {table} SET {charge} WHERE gang IN (SELECT id FROM gangs)")  # noqa: S608
