"""Figures of benchmark rows, PEs and plans, and an HTML report.

Matplotlib is imported only when a figure is drawn. This package does not need a display, and it
does not change `matplotlib.pyplot`.
"""
