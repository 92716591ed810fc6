"""Steps from one schema of the history to the next, which Alembic runs when the recorder starts.

A released step is never changed. Steps must not import `history.schema`, which changes later.
"""
