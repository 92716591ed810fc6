"""`muster up --provider kind`: an installation of Muster with its chart in a cluster of containers.

The modules build Muster's image with the machine's container engine, create a cluster with kind, load the image into it
and apply the chart. Start reading at `cluster`; `image` builds the image with docker or podman, also for `make image`.

Missing programs are reported, with a way to install them, before anything is created. The work is done by other
programs (a container engine, kind, kubectl); an error shows the command that failed. This package may import
musterctl.plane and musterctl.chart; only commands may import it.
"""
