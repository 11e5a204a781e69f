"""Pictures: figures of benchmark rows, of PEs and plans, and an HTML report.

Matplotlib is imported only when a figure is drawn. Nothing here needs a display or changes `matplotlib.pyplot`.
"""
