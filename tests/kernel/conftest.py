# SPDX-License-Identifier: GPL-2.0-only
import subprocess
from functools import cache
from pathlib import Path

import pytest

from foliolab.arch import Architecture
from foliolab.files import KERNEL
from foliolab.kernel.source import Source
from tests.kernel.selftests import Programs


@pytest.fixture(scope="session")
def programs(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The kselftests, and the programs of this directory, by name, for an architecture; all static."""
    return compiled(KERNEL / "files/tools/testing/selftests/mm", source, tmp_path_factory)


def compiled(ours: Path, source: Source, places: pytest.TempPathFactory) -> Programs:
    """The kselftests of the directory ``ours``, and the programs of this one."""
    shared = sorted(ours.glob("*_util.c"))
    sources = {code: shared for code in ours.glob("*.c") if code not in shared}
    sources |= {code: [] for code in (Path(__file__).parent / "programs").glob("*.c")}
    tools = source.tree / "tools"
    # Where ours include "../kselftest.h", the compiler finds that of the tree beside its selftests.
    includes = [f"-I{place}" for place in (ours, tools / "testing/selftests/mm", tools / "include")]

    @cache
    def made(arch: Architecture) -> dict[str, Path]:
        place = places.mktemp(f"programs-{arch.name}")
        for code, others in sources.items():
            command = [arch.compiler, "-O2", "-Wall", "-Werror", "-static", "-pthread", *includes]
            subprocess.run([*command, "-o", str(place / code.stem), str(code), *map(str, others)], check=True)
        return {path.name: path for path in place.iterdir()}

    return made
