"""Migration steps from one schema of the history to the next, which Alembic runs when the recorder starts.

A released migration step is never changed. Migration steps must not import `history.schema`, which may change later.
"""
