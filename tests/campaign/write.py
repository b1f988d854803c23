# SPDX-License-Identifier: GPL-2.0-only
"""A program for tests: append samples to the store given, printing each repetition once it is safe.

``python -m tests.campaign.write STORE FIRST`` goes on until it is killed or the disk is full (status 40).
"""

import itertools
import sys
from pathlib import Path

from foliolab.campaign.store import open_store
from foliolab.errors import DiskFull
from tests.samples import sample


def main() -> int:
    with open_store(Path(sys.argv[1])) as store:
        for repetition in itertools.count(int(sys.argv[2])):
            try:
                store.append(sample(repetition, repetition=repetition, sentence="x" * (repetition * 37 % 3000)))
            except DiskFull as error:
                print(error, file=sys.stderr)
                return error.status
            print(repetition, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
