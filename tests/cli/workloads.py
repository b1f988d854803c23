# SPDX-License-Identifier: GPL-2.0-only
"""An experiment about three workloads, and what was measured of them."""

import json

import pytest

COMPARED = 'compared = ["read_bytes", "major_faults"]\n'
PUBLISHED = {"gcc": (1000, 300), "sqlite": (900, 100), "lmdb": (1010, 101)}


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"rows", "again"}
    found: list[dict[str, object]] = document["rows"]
    return found


def places(found: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(row["workload"], row["variant"], row["metric"], row["change"]) for row in found]
