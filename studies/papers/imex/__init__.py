"""ETRI's iMEX (2024), a shared memory pool."""

FIGURES = {"allgather": "figures.ALLGATHER"}
"""The module of each figure, and its name in the module."""
