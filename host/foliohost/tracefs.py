# SPDX-License-Identifier: GPL-2.0-only
"""A trace of our own beside whatever else is traced, gone when we are gone.

Why this is tracefs and not BPF: both take root, and tracefs takes nothing else. It tells where each event has its
fields (``ringbuffer.layout``), so one file of Python runs on every kernel that has the tracepoints. The kernel follows
what the recorded processes start (``event-fork``). To clean up, a shell removes a directory.

A BPF program is compiled on the server, or it is compiled once and the kernel has to describe its types (BTF). Our own
packages of kernels have no BTF, as docs/install-kernel.md tells. On Debian 12, bpftrace with libbpfcc, libclang1-14 and
libllvm14 takes 145 MB. Tracepoints alone could be read without either, by BPF instructions that we write ourselves.
That would be a loader and an assembler to maintain.

docs/live-traces.md has the cost of tracefs. While faults that find their page are recorded, each takes 1,400
instructions more, and the recorder 450. Of a million faults, that is about one second of a processor with 2,000 million
instructions a second. docs/diagnose.md tells that no event was lost at 20,000 faults a second, and what that took of a
processor. BPF could count in the kernel, and would spare much of what the recorder does. By how much was not measured.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from foliohost import fault_around
from foliohost.errors import FolioError, NotPermitted, UsageError
from foliohost.files import in_container
from foliohost.groups import top_groups
from foliohost.limits import raise_limit
from foliohost.processes import PAGE_BYTES, runs, start_time, tasks_of
from foliohost.ringbuffer import Event, Layout, events, layout

_PLACES = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_NAME = "foliolab-live"
_STALE = re.compile(rf"{_NAME}-(?P<process>\d+)-(?P<started>\d+)(?:-around-(?P<around>\d+))?")
"""Whose it is, by number and start, and what to put back."""
BUFFERS_KIB = 64 << 10
_LEAST_KIB, _MOST_KIB = 512, 8192
"""Of a processor."""
_GENERATIONS = 8
"""Of threads that are started while their parents are being found: some programs start one all the time."""
# Whatever ends us closes its standard input. Our files in the trace may be closed a moment later. What asks us to end
# is for it as well if a whole service or terminal is asked, and a kill of our control group would be. The instance has
# the old value in its name, and stays until that is written back.
_CLEAN_UP = """
trap '' HUP INT TERM
for group in $4; do echo 0 >"$group"; done 2>/dev/null
echo
read -r _
[ ! -e "$1/tracing_on" ] || echo 0 >"$1/tracing_on"
around=$2 tries=0
while [ $tries -lt 100 ]; do
    [ -z "$around" ] || { echo "$around" >"$3" && around=; }
    [ -n "$around" ] || { [ -d "$1" ] && ! rmdir "$1" 2>/dev/null; } || break
    tries=$((tries + 1))
    sleep 0.1
done
"""
_LOCK_SECONDS = 2.0
"""Within which a recording that has just ended puts back what it has changed."""


def tracefs() -> Path:
    """Where the kernel's trace is; FolioError if we cannot have it."""
    if os.geteuid():
        raise NotPermitted("Recording on this machine needs root.")
    if in_container():
        raise UsageError("The kernel's trace goes by the machine's process numbers; this container has its own.")
    for place in map(Path, _PLACES):
        if (place / "instances").is_dir():
            return place
    raise UsageError(f"There is no trace here; 'mount -t tracefs tracefs {_PLACES[0]}' may bring it.")


class Instance:
    """Some tracepoints, recorded for some processes and what these start, while the block lasts.

    With ``fine``, faults map their own page alone meanwhile, on the whole machine. ``buffers_kib`` is what buffers of
    all processors take together, unless there are so many that each has only what it needs.
    """

    def __init__(
        self,
        fields: Mapping[str, Sequence[str]],
        fine: bool = False,
        buffers_kib: int = BUFFERS_KIB,
    ) -> None:
        place = tracefs()
        self._lock = [fault_around.lock(_LOCK_SECONDS)] if fine else []
        try:
            _clean_up_after_others(place, fine)  # before what they have left is taken for the machine's own
            around = fault_around.fault_around_bytes() if fine else None
            if fine and around is None:
                raise UsageError(
                    f"--fine needs {fault_around.FAULT_AROUND}: debugfs is locked down here, or not mounted; then"
                    " 'mount -t debugfs debugfs /sys/kernel/debug' may bring it."
                )
        except BaseException:
            self._unlock()
            raise
        name = f"{_NAME}-{os.getpid()}-{start_time(os.getpid())}" + (f"-around-{around}" if fine else "")
        self._path = place / "instances" / name
        self._fields = fields
        self._layouts: dict[str, Layout] = {}
        self._around = str(around) if fine else ""
        self._buffers_kib = buffers_kib
        self._handles: list[int] = []
        """Of the buffer of each processor."""
        self.buffer_bytes = 0
        """What the buffer of a processor holds."""

    def __enter__(self) -> Instance:
        self._watcher = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                _CLEAN_UP,
                "sh",
                str(self._path),
                self._around,
                str(fault_around.FAULT_AROUND),
                top_groups(),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._lock,  # it has the lock as long as there is something to put back
        )
        try:
            assert self._watcher.stdout
            if not self._watcher.stdout.readline():
                raise FolioError("Nothing is recorded: the shell that would clean up after us has ended.")
            self._path.mkdir(mode=0o700)
            self._set_up()
        except BaseException as error:
            self.__exit__(error)
            if isinstance(error, PermissionError):
                raise NotPermitted(
                    "The kernel lets nobody trace here: it is locked down (/sys/kernel/security/lockdown tells), or a"
                    " security module forbids it."
                ) from error
            raise
        return self

    def __exit__(self, *error: object) -> None:
        # Also one that a signal has kept us from knowing: the instance could not be removed while we wait for that.
        for link in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # the directory itself
                if link.readlink().is_relative_to(self._path):
                    os.close(int(link.name))
        self._watcher.communicate()
        self._unlock()
        if self._around and str(fault_around.fault_around_bytes()) != self._around:
            print(
                f"{fault_around.FAULT_AROUND} could not be set back to {self._around};"
                " the next recording tries it again.",
                file=sys.stderr,
            )

    def _unlock(self) -> None:
        while self._lock:
            os.close(self._lock.pop())

    def _set_up(self) -> None:
        processors = sorted((self._path / "per_cpu").iterdir())
        size = min(max(self._buffers_kib // _online(), _LEAST_KIB), _MOST_KIB)
        self._write("tracing_on", "0")
        self._write("buffer_size_kb", str(size))
        self.buffer_bytes = size << 10
        self._write("trace_clock", "mono")
        self._write("options/event-fork", "1")
        for name, fields in self._fields.items():
            self._layouts[name] = layout((self._path / "events" / name / "format").read_text(), fields)
        raise_limit()
        for processor in processors:
            self._handles.append(os.open(processor / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))

    @property
    def watcher(self) -> int:
        """The process that cleans up after us."""
        return self._watcher.pid

    def start(self, pids: Collection[int]) -> None:
        """Record these processes from now on, and what they start; UsageError if none of them is there."""
        followed = set(tasks_of(pids))
        if not followed:  # without any, all tasks of the machine would be recorded
            raise UsageError("What was to be recorded has ended.")
        self._write("set_event_pid", " ".join(map(str, followed)))
        # Threads that others have started before these were followed; what those start that are is followed anyway.
        for _ in range(_GENERATIONS):
            missed = set(tasks_of(pids)) - followed
            if not missed:
                break
            self._write("set_event_pid", " ".join(map(str, missed)), flags=0)
            followed |= missed
        for name in self._fields:
            self._write(f"events/{name}/enable", "1")
        if self._around:
            fault_around.FAULT_AROUND.write_text(str(PAGE_BYTES))
        self._write("tracing_on", "1")

    def stop(self) -> None:
        """Record nothing from now on, on no processor: all are cut at the same time. ``fetch`` has the rest then."""
        self._write("tracing_on", "0")

    def tasks(self) -> list[int]:
        """Those that are recorded and have not ended."""
        return [int(word) for word in (self._path / "set_event_pid").read_text().split() if word.isdecimal()]

    def fetch(self) -> list[Iterator[bytes]]:
        """What was recorded since, in pages, of each processor.

        Of each no more than its buffer holds, whatever comes meanwhile: the others wait.
        """
        return [self._pages(handle) for handle in self._handles]

    def _pages(self, handle: int) -> Iterator[bytes]:
        try:
            for _ in range(self.buffer_bytes // PAGE_BYTES + 1):
                page = os.read(handle, PAGE_BYTES)
                if not page:
                    break
                yield page
        except OSError as error:
            # A processor that was offline when the instance was made has a buffer once it is online.
            if error.errno not in (errno.EAGAIN, errno.ENODEV):
                raise

    def parsed(self, page: bytes) -> Iterator[Event]:
        """The events of a page."""
        return events(page, self._layouts)

    def lost(self) -> int:
        """Events that the kernel had no room for."""
        text = "".join(path.read_text() for path in self._path.glob("per_cpu/cpu*/stats"))
        return sum(map(int, re.findall(r"^(?:overrun|commit overrun|dropped events): (\d+)$", text, re.MULTILINE)))

    def _write(self, name: str, text: str, flags: int = os.O_TRUNC) -> None:
        handle = os.open(self._path / name, os.O_WRONLY | os.O_CLOEXEC | flags)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)


def _online() -> int:
    """How many processors are online: the others have no buffers."""
    runs = re.findall(r"(\d+)(?:-(\d+))?", Path("/sys/devices/system/cpu/online").read_text())
    return sum(int(last or first) - int(first) + 1 for first, last in runs)


def _is_there(pid: int, started: int) -> bool:
    """Whether a process is there, and not another one by now that has its number."""
    try:
        return start_time(pid) == started and runs(pid)
    except FolioError:
        return False


def _clean_up_after_others(place: Path, fine: bool) -> None:
    """Remove what recordings have left that were killed together with what cleans up after them.

    With ``fine``, we have the lock.
    """
    for path in (place / "instances").glob(f"{_NAME}-*"):
        found = _STALE.fullmatch(path.name)
        if not found:
            continue
        if _is_there(int(found["process"]), int(found["started"])):
            if fine and found["around"]:
                raise UsageError("Another recording with --fine is going on.")
            continue
        with ExitStack() as block:
            if found["around"] and not fine:
                try:
                    block.callback(os.close, fault_around.lock(0))
                except (UsageError, OSError):  # what faults map now may be what another recording has set
                    continue
            if found["around"] and not fault_around.put_back(found["around"]):
                if fine:
                    raise UsageError(
                        f"{fault_around.FAULT_AROUND} cannot be set to {found['around']}, which a killed recording"
                        " found."
                    )
                continue
            with suppress(OSError):  # the one who cleans up after it may be about to
                path.rmdir()
