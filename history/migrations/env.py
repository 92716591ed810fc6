"""Alembic's environment for each upgrade: the migration steps run on the store's connection and in its transaction."""

from alembic import context

from history.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
