"""Plans, and the places of PEs, in words."""
