"""Mutation testing of the product by its unit tests (`make mutants`): mutants that no test kills are missing tests.

A mutant is the product with one operator changed. A random sample of them is run against the tests that cover the
changed line. `operators` finds the possible changes, `sampling` chooses among them, `recording` knows which test covers
which line, `killing` runs tests on a mutant in a forked process, and `report` prints scores and survivors.

Other programs were considered: mutmut changes whole packages and chooses tests by function, cosmic-ray runs one command
for each mutant; neither takes a sample by seed.
"""
