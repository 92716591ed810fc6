"""Recordings of the planner's inputs: changes from the reflectors, the extender's own writes, and decisions.

A recording is a folder of compressed files. Each file begins with all objects known at its start, so that older files
can be deleted. `lines` defines the format, `hook` collects changes on the extender's event loop, and `recorder` writes
the changes in a separate thread. `folder` limits the size and age of the files, and `reading` reads the files.
`decisiontexts` converts decisions to short strings. Recording never delays the planner. A recording contains no secrets
and no environment variables of containers. `extender.replay` replays recordings.
"""
