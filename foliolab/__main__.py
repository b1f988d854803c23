# SPDX-License-Identifier: GPL-2.0-only
import sys

from foliolab.errors import LabError, MissingTool

_LISTS = {"numpy": "figures", "scipy": "figures", "matplotlib": "figures", "dask": "cluster", "distributed": "cluster"}
"""Which of the lists in pyproject.toml brings a module that not all commands import."""


def run() -> int:
    """Run the command line; returns the exit status."""
    try:
        from foliolab.cli.main import main  # which reads files that commands are made of

        return main(sys.argv[1:])
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in _LISTS:
            raise
        from foliolab.files import INSTALLED

        wanted = f"foliolab[{_LISTS[name]}]" if INSTALLED else f"--requirement requirements/{_LISTS[name]}.txt"
        print(f"lab: {name} is not installed; '{sys.executable} -m pip install {wanted}' brings it.", file=sys.stderr)
        return MissingTool.status
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return error.status


if __name__ == "__main__":
    sys.exit(run())
