# SPDX-License-Identifier: GPL-2.0-only
"""Raw pages of two kernels, against what these kernels print of the same."""

import re
import struct

import pytest

from foliohost.errors import FolioError
from foliohost.ringbuffer import Layout, events, layout
from tests.host.recorded import KERNELS, recorded

_LINE = re.compile(r"-(?P<task>\d+) +\[\d+\] \S+ +(?P<time>\d+\.\d+): (?P<name>\w+): (?P<rest>.*)$")


def printed(line: str) -> tuple[str, str, tuple[int, ...]]:
    """Time in microseconds, name and fields of an event, from the kernel's words."""
    found = _LINE.search(line)
    assert found, line
    name, rest, task = found["name"], found["rest"], int(found["task"])
    if place := re.match(r"address=(\S+) ", rest):
        return found["time"], name, (task, int(place[1], 16))
    file = re.match(r"dev[ =](\d+):(\d+) ino[ =](\w+) (?:pfn=\S+ )?ofs=(\d+)(?:-(\d+))?(?: order=(\d+))?$", rest)
    assert file, rest
    fields = [task, int(file[1]) << 20 | int(file[2]), int(file[3], 16), int(file[4]) >> 12]
    fields += [int(file[5]) >> 12] if file[5] else []
    fields += [int(file[6])] if file[6] else []
    return found["time"], name, tuple(fields)


@pytest.mark.parametrize("kernel", KERNELS)
def test_pages_have_what_the_kernel_prints(kernel: str) -> None:
    record = recorded(kernel)
    found = [
        (f"{(time + 500) // 1000 / 1e6:.6f}", name.split("/")[1], fields) for time, name, fields in record.events()
    ]
    assert found == [printed(line) for line in record.text]


def page(body: bytes, time: int = 1000) -> bytes:
    return struct.pack("@QL", time, len(body) | 1 << 31) + body + bytes(64)


def head(kind: int, delta: int) -> bytes:
    return struct.pack("=I", delta << 5 | kind)


def test_all_kinds_of_events() -> None:
    layouts = {"a": Layout(7, struct.Struct("=4xI"), (0,)), "b": Layout(8, struct.Struct("=4xHH"), (1, 0))}
    one, two = struct.pack("=HHI", 7, 0, 42), struct.pack("=HHHH", 8, 0, 1, 2)
    body = head(2, 5) + one  # 8 bytes
    body += head(30, 1) + struct.pack("=I", 1)  # 2^27 + 1 later
    body += head(0, 2) + struct.pack("=I", 4 + 7) + two  # a length in bytes, which is rounded up
    body += head(31, 3) + struct.pack("=I", 1 << 10)  # a time
    body += head(2, 1) + struct.pack("=HHI", 9, 0, 0)  # of somebody else
    body += head(29, 1) + struct.pack("=I", 8) + bytes(4)  # what was discarded
    body += head(2, 1) + one
    body += head(29, 0) + bytes(8) + one  # nothing is behind this
    now = 1000 + 5 + (1 << 27) + 1 + 2
    stamp = (1 << 37) + 3
    assert [(time, name) for time, name, _ in events(page(body), layouts | {"c": layouts["a"]})] == [
        (1005, "c"), (now, "b"), (stamp + 3, "c"),
    ]  # fmt: skip


def test_fields_come_in_the_order_that_was_asked_for() -> None:
    text = (
        "name: x\nID: 12\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
        "\tfield:dev_t s_dev;\toffset:16;\tsize:4;\tsigned:0;\n"
        "\tfield:unsigned long i_ino;\toffset:8;\tsize:8;\tsigned:0;\n"
        "\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;\n"
    )
    found = layout(text, ("s_dev", "i_ino", "common_type"))
    body = struct.pack("=H6xQI", 12, 1 << 40, 5)
    (event,) = events(page(head(5, 0) + body), {"x": found})
    assert event == (1000, "x", (5, 1 << 40, 12))
    with pytest.raises(FolioError, match=r"^A tracepoint of this kernel has no order\.$"):
        layout(text, ("s_dev", "order"))
    with pytest.raises(FolioError, match="has no comm"):
        layout(text, ("s_dev", "comm"))
