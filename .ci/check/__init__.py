"""The check of a commit, as `.ci/run` runs it: concurrent steps, and the result of each.

`steps` lists the steps, and `flaky` the tests that may fail once. `running` runs them, `words` reads the output of a
step, and `results` stores its outcome for `make checked`. All of these need only Python, because the first step creates
the environment in which the others run. `prose` and `picture` need that environment: the first extracts the sentences
that Vale checks, the second draws the README's picture.
"""
