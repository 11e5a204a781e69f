"""Predictions of the time of collectives on machines.

Predictions use the plans of the collectives.
"""

from pidcomm.model.hosts import NETWORK_PHASES, HostsPrediction, predict_hosts
from pidcomm.model.machines import (
    CONSTANTS,
    KINDS,
    LINE_COSTS,
    LINK_CONSTANTS,
    LINK_LEVELS,
    PHASES,
    TOPOLOGIES,
    Constant,
    ConstantRow,
    Link,
    Machine,
    load_machine,
    machine_names,
)
from pidcomm.model.prediction import Prediction, predict, use_machine

__all__ = [
    "CONSTANTS",
    "KINDS",
    "LINE_COSTS",
    "LINK_CONSTANTS",
    "LINK_LEVELS",
    "NETWORK_PHASES",
    "PHASES",
    "TOPOLOGIES",
    "Constant",
    "ConstantRow",
    "HostsPrediction",
    "Link",
    "Machine",
    "Prediction",
    "load_machine",
    "machine_names",
    "predict",
    "predict_hosts",
    "use_machine",
]


def __dir__() -> list[str]:
    return __all__
