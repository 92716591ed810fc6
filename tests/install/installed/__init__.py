"""A small cluster like the users' own, into which the chart is installed: `make e2e-install`.

Unlike the planes of the other tests it runs Muster as pods: they have tokens, Services, probes and limits, and nothing
of Muster runs beside the cluster. Its nodes are those of tests/real. It may import `realnode` and what that may;
nothing but the tests in this folder may import it.
"""
