"""The paper on MPI by travelling threads."""

FIGURES = {
    "fig4": "overhead.FIGURE_4",
    "fig5": "overhead.FIGURE_5",
    "fig6": "calls.FIGURE_6",
    "fig7": "copies.FIGURE_7",
}
"""The module of each figure, and its name in the module."""
