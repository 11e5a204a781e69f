"""The paper on the scalability limits of PIM (SIGMETRICS 2024)."""

_MODULES = {
    "embedding_pe": (5,),
    "embedding_scaling": (6, 10),
    "embedding": (7, 8, 9),
    "embedding_models": (11,),
    "ntt_one_pe": (12,),
    "ntt": (13, 14),
    "ntt_log_q": (15,),
    "ckks": (16,),
    "embedding_links": (18,),
}
FIGURES = {
    f"fig{number}": f"{module}.FIGURE_{number}"
    for module, numbers in _MODULES.items()
    for number in numbers
}
"""The module of each figure, and its name in the module."""
