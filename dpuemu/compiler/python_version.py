"""End the program if its Python is older than 3.10. Older Pythons can read this file."""

import sys

RULE = " is older than Python 3.10; DPUEMU_PYTHON selects another Python"
if sys.version_info < (3, 10):  # noqa: UP036
    sys.exit(sys.argv[0] + ": error: " + sys.executable + RULE)
