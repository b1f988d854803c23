# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.arch import NATIVE
from tests.cli.act import compiled


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A static program that does what its first argument says, for this machine."""
    return compiled(NATIVE, tmp_path_factory.mktemp("program"))
