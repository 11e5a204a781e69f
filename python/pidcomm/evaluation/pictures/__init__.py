"""Pictures: figures of benchmark rows, of where PEs are and what a plan does, and a page with everything.

Matplotlib is imported when a figure is drawn, not before. Nothing here needs a display or changes the state of
`matplotlib.pyplot`.
"""
