"""The embedded control plane: a real Kubernetes on one machine, without a container engine.

The modules start, watch and stop etcd, the API server, the controller manager, two kube-schedulers, kwok and Muster's
own three processes. They are ordinary processes of this machine, each with a pid file, a log and ports of its own.
Start reading at `plane`, which puts it together. `state` names the parts, `commandlines` has the command line of each,
`process` is one of them, `supervisor` starts again what dies, and `install` has what the cluster must hold.
docs/architecture.md says why kwokctl does not do this.

Promises to signal only processes that it started, to leave none behind after `stop`, and to be started twice without
harm. It may import the kernel, certs, musterctl.chart, and of the webhook its configuration and registration; only the
rest of musterctl and the tests may import it.
"""
