# SPDX-License-Identifier: GPL-2.0-only
import os
import shutil
import signal
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.name import BASE_VERSION
from foliolab.kernel.series import bases, diffs, read_series
from foliolab.kernel.source import Source
from foliolab.kernel.timed_disk import EXTRA
from foliolab.model.compiled import compiled
from tests.machines import ALL_KERNELS, MACHINES, Machine

# It asserts, and is no test module: without this, a failure would not say what was found.
pytest.register_assert_rewrite("tests.kernel.selftests")

# In a shell's background all that tests start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)

BASES = bases()
"""The versions of Linux that our series is made for."""
ALL_COMMITS = os.environ.get("FOLIOLAB_COMMITS") == "all"
"""Whether each commit of each of them is to be tried, which takes an hour of a processor."""
BUILT_BASES = BASES if ALL_COMMITS else (BASE_VERSION,)
"""Those whose objects are compiled only to see what compilers say."""
DEBUG_EXTRAS = ("btrfs", EXTRA, "xfs") if ALL_KERNELS else ("xfs",)
"""What all debug kernels of the tests have, so that one is built."""

_FETCHED = {"source", "patched_kernel", "stock_kernel", "debug_kernel", "engine", "lucene_root"}
"""Fixtures that cannot be had without a network the first time: a kernel's source, kernels, storage engines."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and _FETCHED.intersection(item.fixturenames):
            item.add_marker("boot")
    # Files of short tests come last: they keep all processors busy to the end.
    boots = {item.path for item in items if item.get_closest_marker("boot")}
    items.sort(key=lambda item: item.path not in boots)


@pytest.fixture(scope="session")
def source() -> Source:
    """The current pristine source, from the developer's own cache."""
    return from_debian(BASE_VERSION)


@pytest.fixture
def small_source(source: Source, tmp_path: Path) -> Source:
    """A source that a test may spoil."""
    return reduced(source, tmp_path / "small/pristine")


def reduced(source: Source, tree: Path) -> Source:
    """In ``tree``, those files of a source that our hooks change, its Makefile, and how its hunks are headed."""
    for file in {"Makefile", ".gitattributes"}.union(
        *(diffs(feature.patch) for feature in read_series(source.version))
    ):
        if (source.tree / file).exists():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.tree / file, tree / file)
    return Source(tree, source.version, source.identity)


@pytest.fixture(scope="session", params=MACHINES, ids=str)
def machine(request: pytest.FixtureRequest) -> Machine:
    """For tests of what depends on architecture or page size."""
    chosen: Machine = request.param
    return chosen


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with nothing but the model, compiled once for all."""
    library = compiled()
    place = tmp_path / "cache/model" / library.parent.name
    place.mkdir(parents=True)
    shutil.copyfile(library, place / library.name)
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def patched_kernel() -> BuiltKernel:
    return build(KernelRequest(NATIVE, "patched"))


@pytest.fixture(scope="session")
def stock_kernel() -> BuiltKernel:
    """Debian's own, which takes no build: what ours is held against where nothing depends on the configuration."""
    return build(KernelRequest(NATIVE, "image:debian:6.12"))


@pytest.fixture(scope="session")
def debug_kernel() -> BuiltKernel:
    return build(KernelRequest(NATIVE, "patched", "debug", DEBUG_EXTRAS))
