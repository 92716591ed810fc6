"""The Helm chart as Python sees it: its files, the roles in them, and helm itself.

`charts/muster/files` holds what the chart's templates and `muster up` share: CRDs, roles, policies, kube-scheduler's
configuration, webhooks. `roles` reads the roles and makes objects of them, `policies` reads the admission policies,
`render` has helm make the whole.

Promises that a verb stands in one place: `files/roles/<process>.yaml`. May import the kernel and musterctl.plane's
binaries; nothing below musterctl may import it.
"""
