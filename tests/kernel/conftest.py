# SPDX-License-Identifier: GPL-2.0-only
from functools import cache
from pathlib import Path

import pytest

from foliolab.arch import Architecture
from foliolab.errors import BuildError
from foliolab.files import KERNEL, cache_directory, digest, digest_files, made_once
from foliolab.kernel.source import Source
from foliolab.process import compiler, run
from tests.debian import Mirror
from tests.kernel.selftests import Programs

_FLAGS = ("-O2", "-Wall", "-Werror", "-static", "-pthread")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """The only one that this machine has, and an empty cache."""
    made = Mirror(tmp_path / "mirror")
    monkeypatch.setenv("APT_CONFIG", str(made.configuration))
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    return made


@pytest.fixture(scope="session")
def programs(source: Source) -> Programs:
    """The kselftests, and the programs of this directory, by name, for an architecture; all static."""
    return compiled(KERNEL / "files/tools/testing/selftests/mm", source)


def compiled(ours: Path, source: Source) -> Programs:
    """The kselftests of the directory ``ours``, and the programs of this one. Cached by what goes in."""
    shared = sorted(ours.glob("*_util.c"))
    sources = {code: shared for code in ours.glob("*.c") if code not in shared}
    sources |= {code: [] for code in (Path(__file__).parent / "programs").glob("*.c")}
    tools = source.tree / "tools"
    # Where ours include "../kselftest.h", the compiler finds that of the tree beside its selftests.
    includes = [f"-I{place}" for place in (ours, tools / "testing/selftests/mm", tools / "include")]

    @cache
    def made(arch: Architecture) -> dict[str, Path]:
        found, version = compiler(arch)

        def make(place: Path) -> None:
            for code, others in sources.items():
                run([found, *_FLAGS, *includes, "-o", str(place / code.stem), str(code), *map(str, others)], BuildError)

        libc = Path(run([found, "-print-file-name=libc.a"], BuildError).decode().strip())
        files = [Path(__file__), libc, *sources, *shared, *ours.glob("*.h")]
        key = digest([source.identity, arch.name, version, digest_files(files)])
        return {path.name: path for path in made_once(cache_directory() / "kselftests", key, make).iterdir()}

    return made
