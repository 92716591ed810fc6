"""The check of a commit, as `.ci/run` runs it: steps, side by side, and what became of each.

`steps` lists the steps, and `flaky` the tests that may fail once. `running` runs them, `words` reads the output of a
step, `results` keeps its outcome for `make checked`. All of these need Python alone: the first step makes the
environment in which the others run. `prose` and `picture` need that environment: the first extracts the sentences that
Vale checks, the second draws the README's picture.
"""
