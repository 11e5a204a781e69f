"""The commands that this package adds to `pidcomm`."""

_MODULES = {
    "Results": {"draw": "draw", "plot": "pictures", "report": "pictures"},
    "Studies": {"app": "apps", "model": "model", "parcels": "parcels", "reproduce": "reproduce"},
}
# For each title in --help, the commands under the title and their modules.
COMMANDS = {
    title: {name: f"{__name__}.{module}" for name, module in commands.items()}
    for title, commands in _MODULES.items()
}
