"""Magnitudes of scores: a plugin of a larger magnitude decides, smaller ones break its ties (as in KAI-Scheduler)."""

DENSITY = 9.0
"""Most that a placement strategy (binpack, spread) gives."""
RESOURCE_TYPE = 10.0
AVAILABILITY = 100.0
GPU_DENSITY = 1_000.0
TOPOLOGY = 10_000.0
KUBERNETES = 100_000.0
"""Preferences that users wrote in Kubernetes' own terms (preferred affinity)."""
GPU = "nvidia.com/gpu"
