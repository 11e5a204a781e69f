"""The commands of `pidcomm model`."""

from __future__ import annotations

# Importing a module adds the commands of the module. --help lists the commands in the order of the
# imports.
from pidcomm_studies.cli.model import predict as predict  # isort: skip
from pidcomm_studies.cli.model import worth as worth  # isort: skip
from pidcomm_studies.cli.model import scale as scale  # isort: skip
from pidcomm_studies.cli.model import accuracy as accuracy  # isort: skip
