"""Installs the dependencies of a product, without the other products.

python tools/install_dependencies.py PRODUCT
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

PRODUCTS = ("dpuemu", "pidcomm")


def main(product: str) -> None:
    """Install them, unless the environment has them. Modules are compiled at their first import."""
    text = Path(product, "pyproject.toml").read_text(encoding="utf-8")
    wanted = [
        dependency
        for dependency in tomllib.loads(text)["project"].get("dependencies", [])
        if re.split(r"\W", dependency)[0] not in PRODUCTS
    ]
    if wanted:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
        os.execv(sys.executable, [*pip, *wanted])


if __name__ == "__main__":
    main(*sys.argv[1:])
