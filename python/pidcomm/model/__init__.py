"""Predictions of what collectives take on machines, from their plans."""

from pidcomm.model.hosts import NETWORK_PHASES, HostsPrediction, predict_hosts
from pidcomm.model.machines import (
    CONSTANTS,
    LINE_COSTS,
    PHASES,
    Constant,
    ConstantRow,
    Machine,
    load_machine,
    machine_names,
)
from pidcomm.model.prediction import Prediction, predict, use_machine

__all__ = [
    "CONSTANTS",
    "LINE_COSTS",
    "NETWORK_PHASES",
    "PHASES",
    "Constant",
    "ConstantRow",
    "HostsPrediction",
    "Machine",
    "Prediction",
    "load_machine",
    "machine_names",
    "predict",
    "predict_hosts",
    "use_machine",
]
