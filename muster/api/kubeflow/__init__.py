"""Kubeflow Trainer's objects, and the JobSet that they embed: TrainJob (`trainer`), its runtimes and their patches.

The package imports only `muster.api.kubernetes`, `muster.api.volcano` and the modules of `muster.api` itself.
"""
