"""Predictions beyond one collective: advice, links between PEs, scaling, calibration and
validation.
"""

from pidcomm_studies.models.advice import Advice, Estimate, Way, advise, compare, influences
from pidcomm_studies.models.links import LINKS, LinksPrediction, predict_links

__all__ = [
    "LINKS",
    "Advice",
    "Estimate",
    "LinksPrediction",
    "Way",
    "advise",
    "compare",
    "influences",
    "predict_links",
]


def __dir__() -> list[str]:
    return __all__
