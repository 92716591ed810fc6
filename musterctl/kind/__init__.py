"""`muster up --provider kind`: an installation of Muster with its chart in a cluster of containers.

The modules build Muster's image with the machine's container engine, create a cluster with kind, load the image into it
and apply the chart. Readers of the code start with `cluster`; `image` builds with docker or podman, also for
`make image`.

Before anything is created, errors report missing programs and how to install them. Other programs do the work (an
engine, kind, kubectl), and an error shows the command that failed. This package may import musterctl.plane and
musterctl.chart; only commands may import it.
"""
