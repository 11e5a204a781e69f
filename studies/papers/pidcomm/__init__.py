"""The PID-Comm paper (ISCA 2024)."""

FIGURES = {
    **{f"fig{number}": f"applications.FIGURE_{number}" for number in (4, 13, 15, 21, 22)},
    **{f"fig{number}": f"figures.FIGURE_{number}" for number in (14, 16, 17, 18, 19, 20)},
    "fig23a": "figures.FIGURE_23A",
    "fig23b": "hosts.FIGURE_23B",
}
"""The module of each figure, and its name in the module."""
