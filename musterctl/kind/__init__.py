"""`muster up --provider kind`: Muster as its users install it, in a cluster of containers.

The modules build Muster's image with the machine's container engine, make a cluster with kind, load the image into it
and apply the chart. Start reading at `cluster`; `image` builds with docker or podman, for `make image`, too.

Promises to say what is missing, and what to do about it, before anything is made. Other programs do the work (an
engine, kind, kubectl), each in a command that can be read in its error. May import musterctl.plane and
musterctl.chart; only commands may import it.
"""
