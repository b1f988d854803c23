# SPDX-License-Identifier: GPL-2.0-only
import sys

from foliolab.errors import LabError

if __name__ == "__main__":
    try:
        from foliolab.cli.main import main  # which reads files that commands are made of

        sys.exit(main(sys.argv[1:]))
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        sys.exit(error.status)
