# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.errors import BuildError
from foliolab.vm.image import guest_programs
from tests.guest.program import PAGE, Plan, sanitized
from tests.tmpfs import tmpfs


@pytest.fixture(scope="session")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The pages of access patterns, without any access."""
    program = sanitized("pattern_pages", tmp_path_factory.mktemp("patterns"))

    def pages(
        name: str,
        file_pages: int,
        count: int,
        *,
        order: str = "forward",
        stride: int = 0,
        streams: int = 0,
        object_pages: int = 0,
        burst: int = 0,
        region: float = 0,
        seed: int = 1,
    ) -> list[int]:
        settings = [name, order, stride, streams, object_pages, burst, region, seed, file_pages, count]
        output = process.run([program, *map(str, settings)], BuildError)
        return [int(line) for line in output.split()]

    return pages


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    """All programs of guest/, compiled for this machine: name -> path."""
    return guest_programs(NATIVE)


@pytest.fixture(scope="session")
def folios(programs: dict[str, Path]) -> Path:
    return programs["folios"]


@pytest.fixture(scope="module")
def probe(request: pytest.FixtureRequest, programs: dict[str, Path]) -> Path:
    """The program that a test module names as its PROBE."""
    return programs[request.module.PROBE]


@pytest.fixture
def large_folios(tmp_path: Path) -> Iterator[Path]:
    """A file system that puts files into folios as large as they are."""
    if PAGE != 4096:
        pytest.skip("the sizes are those of pages of 4 KiB")
    with tmpfs(tmp_path / "large", "size=64m,huge=within_size") as place:
        yield place
