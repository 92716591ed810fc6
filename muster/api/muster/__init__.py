"""Muster's own objects: gangs as labels and annotations (`gang`), and the nodes of their members (`placement`).

Imports only the other folders of `muster.api`.
"""
