"""The embedded control plane: a real Kubernetes on one machine, without a container engine.

What lives here starts, watches and stops etcd, the API server, the controller manager, two kube-schedulers, kwok and
Muster's own three processes as ordinary processes of this machine, each with a pid file, a log and ports of its own.
It promises to signal only processes that it started, to leave none behind after `stop`, and to be started twice
without harm. It may import the kernel and certs; nothing but musterctl.commands (and the tests) may import it.
"""
