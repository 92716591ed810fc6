"""The planner's inputs, recorded: changes from the reflectors, its own writes, and what it decided on them.

A recording is a folder of compressed files, each of which begins with everything that is known then, so that old ones
can be dropped whole. `lines` is the format, `tap` takes notes on the extender's loop, `recorder` writes them in a
thread of its own, `ring` keeps the files within bounds, and `reading` reads them again. `words` says decisions shortly.
It promises that recording never holds the planner, and that no secret and no environment of a container is in it.
`extender.replay` replays their decisions.
"""
