"""Run the command: python -m dpuemu."""

from dpuemu.cli import main

main()
