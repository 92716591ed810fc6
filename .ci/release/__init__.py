"""The files of a release, built from a commit: `make dist` writes them to build/dist.

The same commit, version and base image give the same bytes. Only the signature differs, because it contains a random
number. `__main__` has the order of the steps; each other module makes one kind of file.
"""
