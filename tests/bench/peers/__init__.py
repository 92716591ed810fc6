"""Muster beside other gang schedulers on one machine, in turns (`make bench-peers`).

`shapes` says what is submitted, `peer` what a peer is, `meter` what is measured, `rounds` who is measured when, and
`page` what docs/benchmarks.md and the README say of it. One module per project has its peers: `kubernetes`, `muster`,
`volcano`, `coscheduling` and `kueue`. Their programs are built from Go modules, see `tests/neighbours/modules`.
"""
