"""Muster's own objects: gangs as labels and annotations (`gang`), and the nodes of their members (`placement`).

`node_faults` reads from a Node what is wrong with it.

Imports only the other folders of `muster.api`.
"""
