"""Steps from one schema of the history to the next, which Alembic takes when the recorder starts.

A step that has been released is never changed. It must not import `history.schema`, which changes later.
"""
