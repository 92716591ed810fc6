"""Muster's own objects: gangs as labels and annotations (`gang`), and the nodes of their members (`placement`).

`noted` is the short form of a placement for a gang of one pod: an annotation of the PodGroup. Imports only the other
folders of `muster.api`.
"""
