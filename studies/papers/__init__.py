"""Figures of published papers, each beside what this machine and the model give."""
