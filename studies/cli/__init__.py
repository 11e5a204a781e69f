"""The commands that this package adds to `pidcomm`."""

# For each title in --help, the commands under the title and their modules.
COMMANDS = {
    "Results": {"draw": "draw", "plot": "pictures", "report": "pictures"},
    "Studies": {"app": "apps", "model": "model", "parcels": "parcels", "reproduce": "reproduce"},
}
COMMANDS = {
    title: {name: f"{__name__}.{module}" for name, module in commands.items()}
    for title, commands in COMMANDS.items()
}
