"""The local control plane: a real Kubernetes on one machine, without a container engine.

The modules start, watch and stop etcd, the API server, the controller manager, two kube-schedulers, kwok and Muster's
own three processes. All components are ordinary processes of this machine, each with its own pid file, log and ports.
Start reading at `plane`, which combines the other modules. `state` lists the components, `commandlines` has the command
line of each component, and `process` runs a component. `supervisor` restarts dead components, and `install` creates the
objects that Muster needs. The page docs/architecture.md explains why kwokctl is not used.

A control plane sends signals only to processes that it has started, and leaves no processes behind after `stop`.
Starting a running control plane again does no harm. This package may import `muster`, `certs`, musterctl.chart, and the
webhook's configuration and registration. Only the rest of musterctl and the tests may import this package.
"""
