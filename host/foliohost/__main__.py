# SPDX-License-Identifier: GPL-2.0-only
import sys

if __name__ == "__main__":
    if sys.version_info < (3, 9):  # noqa: UP036 it is what older ones are told
        sys.exit("foliolab-host: Python 3.9 is needed, and this is {}.{}.".format(*sys.version_info))
    from foliohost.cli.main import main  # which older ones cannot read

    sys.exit(main(sys.argv[1:]))
