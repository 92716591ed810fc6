"""Real nodes on one machine, without a container engine: kubelet, containerd and runc beside the embedded plane.

What lives here makes two nodes out of ordinary processes, in a network and a set of mounts of their own: one bridge is
the pods' network, a small CoreDNS is their DNS, images are made from Debian's packages. Nothing here leaves the
machine while the nodes run, and nothing of it is left when they have ended, however that happens.

They need Linux, root, namespaces, writable control groups (version 1 is tested; of version 2 only the folders are
known), and of Debian the packages that `rights.PACKAGES` names. The first use builds kubelet and CoreDNS (a quarter of
an hour on 2 cores) and two images (five minutes) into the user's cache, 1.5 GB; each run needs another 4 GB there, and
3 GB of memory.
"""
