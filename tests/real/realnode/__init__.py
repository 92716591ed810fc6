"""Real nodes on one machine, without a container engine: kubelet, containerd and runc beside the embedded plane.

What lives here makes two nodes out of ordinary processes, in a network and with mounts of their own: one bridge is the
pods' network, a small CoreDNS is their DNS, images are made of Debian's packages. Nothing here leaves the machine while
the nodes run, and nothing of it is left when they have ended, however that happens. docs/quickstart.md says what is
needed; `rights` checks it. It may import the plane and what that may; nothing but the tests in this folder and in
tests/install may import it.
"""
