# SPDX-License-Identifier: GPL-2.0-only
"""Tables of samples whose disks took time."""

from typing import Any

from foliolab.analyse.rows import group_samples
from foliolab.report.view import time_remark, timeless
from tests.report.shown import GIB, MODEST, terminal, view
from tests.samples import sample


def timed(variant: str, seconds: float, **others: Any) -> Any:
    metrics = {**MODEST, "read_bytes": GIB, "seconds": seconds}
    place: dict[str, Any] = {"backend": "qemu-icount", "device": "nvme", "cell": {"pattern": "random"}, **others}
    return sample(variant=variant, metrics=metrics, parameters={"device": place["device"]}, **place)


def test_disks_of_another_kind_make_a_table_of_their_own() -> None:
    groups = group_samples([timed("off", 10), timed("off", 1000, device="hdd"), timed("off", 3, device="")])
    assert [group.device for group in groups] == ["nvme", "hdd", ""]
    assert groups[0].title.endswith("backend qemu-icount, device nvme")


def test_seconds_mean_something_where_disks_take_time() -> None:
    lines = terminal(200, view(timed("off", 10)))
    assert any(line.startswith("Seconds are virtual: a request takes 80 us") for line in lines)
    assert not any("seconds mean nothing" in line or "emulated" in line for line in lines)
    assert any("seconds mean nothing" in line for line in terminal(200, view(timed("off", 10, device=""))))


def test_one_answer_says_what_seconds_are() -> None:
    nothing, virtual, real = group_samples(
        [timed("off", 10, device=""), timed("off", 10), timed("off", 10, device="", backend="qemu-kvm")]
    )
    assert [timeless(group) for group in (nothing, virtual, real)] == [True, False, False]
    assert [time_remark(group).split(" ")[0] for group in (nothing, virtual, real)] == ["Emulated", "Seconds", ""]
