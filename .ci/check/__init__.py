"""The check of a commit, as `.ci/run` runs it: steps, side by side, and what became of each.

`steps` says what there is to do, and `flaky` which tests may fail once. `running` does it, `words` reads what a step
has said, `results` keeps what became of it for `make checked`. All of it needs Python alone: the first step makes the
environment in which the others run.
"""
