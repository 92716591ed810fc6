"""`muster up --provider kind`: Muster as its users install it, in a cluster of containers.

What lives here builds Muster's image with the machine's container engine, makes a cluster with kind, loads the image
into it and applies the chart. Start reading at `cluster`; `configuration` is what kind is given, `image` builds (it is
`make image`, too), and `engine` is docker or podman.

Promises to say what is missing, and what to do about it, before anything is made. Other programs do the work (an
engine, kind, kubectl), each in a command that can be read in its error. May import musterctl.plane and
musterctl.chart; only commands may import it.
"""
