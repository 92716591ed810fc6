"""Muster's own objects: how a gang stands on the wire (`gang`) and where its members go (`placement`).

`noted` is the short form of a placement, an annotation of the PodGroup, for a gang of one pod. Imports only the other
folders of `muster.api`.
"""
