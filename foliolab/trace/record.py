# SPDX-License-Identifier: GPL-2.0-only
"""Recording: a program in a guest, and which pages of mapped files it touched."""

import json
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from foliohost.trace import Trace, TraceFile
from foliolab.errors import NoResult
from foliolab.vm.guest import Guest, OnOutput

WINDOW = 16
"""Pages; the least that guest/tools/touches.c takes."""
MOST_TOUCHES = 4_000_000

_OUTPUT = "/tmp/touches"


def record(
    guest: Guest,
    argv: Sequence[str],
    *,
    files: str = "/data",
    most: int = MOST_TOUCHES,
    environment: Mapping[str, str] | None = None,
    deadline_seconds: float | None = 600,
    on_output: OnOutput | None = None,
) -> tuple[Trace, int]:
    """Run ``argv`` in ``guest``, a kernel of ours, to its end; have every touch of a page of a file recorded.

    Returns the trace, and the exit status of what was run, as a shell has it.

    The files are those of the file system at ``files``. A touch may be missing if fewer than ``WINDOW`` other pages
    were touched since the last one of its page. Whatever else runs in the guest meanwhile is recorded, too.

    What was run may have failed, which the status tells. GuestFailure or NoResult if there is no recording.
    """
    options = {"files": files, "window": WINDOW, "most": most, "out": _OUTPUT}
    command = ["touches", *(f"--{name}={value}" for name, value in options.items()), "--", *argv]
    memory_bytes = _available(guest)
    job = guest.run(command, deadline_seconds, env=environment, on_output=on_output)
    output = guest.run([":read", _OUTPUT], deadline_seconds)
    if output.status:
        job.checked()
        raise NoResult("The guest has not written down what was touched.")
    line, _, body = output.stdout.partition(b"\n")
    header = json.loads(line.decode(errors="replace"))  # names of files can be any bytes
    touches = array("I", body)
    if len(touches) != 2 * header["touches"]:
        raise NoResult("The guest has not written down all that was touched.")
    file_of, page_of = without_repeats(touches[::2], touches[1::2], WINDOW // 2)
    trace = Trace(
        files=tuple(TraceFile(each["name"], each["pages"]) for each in header["files"]),
        file_of=file_of,
        page_of=page_of,
        window=WINDOW,
        page_size=header["page_size"],
        lost=header["lost"],
        memory_bytes=memory_bytes,
        program=tuple(argv),
        other={"cut": header["cut"]} if header["cut"] else {},
    )
    return trace, header["status"]


def without_repeats(file_of: "array[int]", page_of: "array[int]", window: int) -> "tuple[array[int], array[int]]":
    """Files and pages of touches, but for those of one of the last ``window`` distinct pages touched.

    The kernel tells of a few of those: each process and each mapping has to map a page for itself.
    """
    files, pages = array("I"), array("I")
    last: OrderedDict[tuple[int, int], None] = OrderedDict()
    for touch in zip(file_of, page_of, strict=True):
        if touch in last:
            last.move_to_end(touch)
            continue
        last[touch] = None
        if len(last) > window:
            last.popitem(last=False)
        files.append(touch[0])
        pages.append(touch[1])
    return files, pages


def _available(guest: Guest) -> int | None:
    """Bytes of the guest's memory that files can have before the program takes its own; None if it does not tell."""
    words = guest.run([":read", "/proc/meminfo"]).checked().stdout.decode().split()
    return int(words[words.index("MemAvailable:") + 1]) << 10 if "MemAvailable:" in words else None
