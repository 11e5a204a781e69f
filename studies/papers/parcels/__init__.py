"""The paper on MPI by travelling threads."""

FIGURES = {f"fig{number}": f"figures.FIGURE_{number}" for number in (4, 5, 6, 7)}
"""The module of each figure, and its name in the module."""
