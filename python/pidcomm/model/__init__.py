"""Predictions of the time of collectives on machines. Predictions use the plans of the collectives."""

from pidcomm.model.advice import Advice, Estimate, Way, advise, compare, influences
from pidcomm.model.hosts import NETWORK_PHASES, HostsPrediction, predict_hosts
from pidcomm.model.machines import (
    CONSTANTS,
    KINDS,
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
    "KINDS",
    "LINE_COSTS",
    "NETWORK_PHASES",
    "PHASES",
    "Advice",
    "Constant",
    "ConstantRow",
    "Estimate",
    "HostsPrediction",
    "Machine",
    "Prediction",
    "Way",
    "advise",
    "compare",
    "influences",
    "load_machine",
    "machine_names",
    "predict",
    "predict_hosts",
    "use_machine",
]
