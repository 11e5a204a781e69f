"""The paper on the scalability limits of PIM (SIGMETRICS 2024)."""

_MODULES = {
    "embedding": (5, 6, 7, 8, 9, 10),
    "embedding_models": (11,),
    "ntt": (12, 13, 14, 15),
    "ckks": (16,),
    "embedding_links": (18,),
}
FIGURES = {
    f"fig{number}": f"{module}.FIGURE_{number}"
    for module, numbers in _MODULES.items()
    for number in numbers
}
"""The module of each figure, and its name in the module."""
