# SPDX-License-Identifier: GPL-2.0-only
"""A running guest: boot it, give it jobs, and learn how it ended if it does not answer."""

import base64
import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from foliolab import process
from foliolab.arch import Architecture, Bytes
from foliolab.device import Device
from foliolab.errors import DiskFull
from foliolab.files import full_disk_named
from foliolab.vm import guest_disk, numa, outcome
from foliolab.vm.accel import Accelerator
from foliolab.vm.guest_disk import Bus
from foliolab.vm.guest_disk import Disk as Disk
from foliolab.vm.outcome import Ending, GuestFailure, JobResult, Outcome, OutcomeKind, classify, failure
from foliolab.vm.qemu import Qemu

_PORT_NAME = "org.foliolab.control"

# Every end has to be seen from outside: an oops is a panic, and a panic, which shows what all CPUs
# and all blocked tasks are doing, a reset. Time stamps are wanted whatever the configuration says.
_BOOT_ARGUMENTS = "panic=-1 oops=panic panic_print=0xc0 printk.time=1"

_CUT_SHORT = "Initramfs unpacking failed: write error"
"""The kernel goes on with what fitted into memory."""

_POWER_OFF_SECONDS = 60

_TIMED = "/sys/module/timed_disk/parameters"
"""Of the driver in device/."""
_REQUEST_KB = "128"
"""Which is the least that our kernel and the module measure."""
_MODULE_REQUEST_KB = "/sys/module/mmap_readahead_window/parameters/request_kb"

OnOutput = Callable[[int, bytes], None]
"""Called with 1 or 2, for the job's output or error output, and the bytes, as they come."""


@dataclass(frozen=True)
class GuestConfig:
    arch: Architecture
    kernel: Path | None
    """None: the boot loader of the first disk has one, and decides about its command line."""
    initramfs: Path | None
    accelerator: Accelerator
    memory_mib: int = 512
    cpus: int = 1
    nodes: numa.Nodes = ()
    distances: numa.Distances = ()
    disks: tuple[Disk, ...] = ()
    disk_bus: Bus = "virtio"
    kernel_name: str = ""
    """What it is called when it does not boot, which is a BootFailed then."""
    boot_arguments: str = ""
    """Appended to the kernel's command line."""
    boot_deadline_seconds: float = 60
    """On a real machine; the accelerator's patience stretches it, as every other deadline."""
    device: Device | None = None
    """Of which kind the disks are if they take time; the kernel needs the driver in device/ for that."""

    def disk_name(self, number: int) -> str:
        """What the kernel calls a disk, of which the first has the number 0: "vda"."""
        name = guest_disk.disk_name(self.disk_bus, number)
        return f"timed_{name}" if self.device else name


@dataclass(frozen=True)
class Ready:
    """What a guest says of itself when it is up."""

    release: str
    page_size: Bytes
    cpus: int


def qemu_command(config: GuestConfig) -> list[str]:
    """QEMU's command line, but for what is behind the control port and the console."""
    config.accelerator.require_cpus(config.cpus)
    arch = config.arch
    argv = [process.tool(arch.qemu), *config.accelerator.options]
    argv += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    argv += ["-m", f"{config.memory_mib}M"]
    argv += numa.options(config.nodes, config.distances) if config.nodes else ["-smp", str(config.cpus)]
    if config.kernel:
        arguments = [f"console={arch.console}", _BOOT_ARGUMENTS, arch.boot_arguments, config.boot_arguments]
        argv += ["-kernel", str(config.kernel), "-initrd", str(config.initramfs)]
        argv += ["-append", " ".join(filter(None, arguments))]
    argv += ["-serial", "chardev:console"]
    argv += ["-device", "virtio-serial-pci", "-device", f"virtserialport,chardev=control,name={_PORT_NAME}"]
    argv += ["-device", "virtio-rng-pci"]
    for number, disk in enumerate(config.disks):
        argv += guest_disk.options(disk, config.disk_bus, number)
    return argv


class Guest:
    """A guest from its boot to the end of the ``with`` block, which it never survives.

    QEMU is also killed by the kernel when this process dies, for which the thread that enters
    the block must be the main thread. The console's log stays at ``console`` afterwards.

    Whatever makes the guest stop answering raises GuestFailure, and the guest is gone then.
    """

    ready: Ready

    def __init__(self, config: GuestConfig, console: Path) -> None:
        self.config = config
        self._console = console
        self._last_id = 0
        self._heard = 0
        self._received = b""
        self._until: float | None = None

    def __enter__(self) -> Self:
        with full_disk_named(self._console.parent):
            self._console.parent.mkdir(parents=True, exist_ok=True)
            self._console.write_bytes(b"")
        self._qemu = Qemu(qemu_command(self.config), self._console)
        with ExitStack() as stack:
            stack.callback(self._qemu.close)
            self.ready = self._booted()
            self._prepare_disks()
            stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._qemu.close()

    def run(
        self,
        argv: Sequence[str],
        deadline_seconds: float | None = 60,
        *,
        env: Mapping[str, str] | None = None,
        on_output: OnOutput | None = None,
    ) -> JobResult:
        """Run a program of the guest, or one of init's verbs such as ``:write``, to its end.

        A job that has not ended by its deadline (None: it may run for ever) takes the guest with it.
        Its own failure raises nothing: see ``JobResult.checked``.
        """
        output = {1: bytearray(), 2: bytearray()}
        with self._deadline(deadline_seconds, f"end {argv[0]}"):
            self._request(argv, env)
            while (event := self._event())["event"] == "output":
                data = base64.b64decode(event["data"])
                output[event["fd"]] += data
                if on_output:
                    on_output(event["fd"], data)
        if event["event"] != "exit":
            sentence = f"The guest's init cannot run '{shlex.join(argv)}': {event['message']}."
            raise failure(Outcome(OutcomeKind.NO_RESULT, sentence))
        return JobResult(
            argv=tuple(argv),
            status=event["status"],
            signal=event["signal"],
            stdout=bytes(output[1]),
            stderr=bytes(output[2]),
            oom_kills=event["oom_kills"],
            cpu_seconds=event["cpu_us"] / 1e6,
        )

    def power_off(self) -> None:
        """Sync and unmount the guest's disks and end it; for disks that keep what was written.

        DiskFull if some of that could not be written.
        """
        with self._deadline(_POWER_OFF_SECONDS, "switch itself off"):
            self._request([":poweroff"])
            if self._line():
                raise failure(Outcome(OutcomeKind.NO_RESULT, "The guest did not switch itself off."))
            ending = self._qemu.ending()
        if ending is Ending.LOST or "reboot: " not in self.console():
            raise self._failure(ending)
        if "I/O error" in self.console():  # of what nobody but the kernel waited for
            kept = {str(disk.path.parent) for disk in self.config.disks if disk.keep_writes}
            places = " or ".join(sorted(kept)) or "the directory for temporary files"
            raise DiskFull(f"The guest could not write to its disk; is there space left in {places}?")

    def console(self) -> str:
        return self._console.read_text(errors="replace")

    def heard(self) -> tuple[list[str], str]:
        """The kernel's complaints since the last call, and a sentence if the host was too slow for it."""
        titles, real_time = outcome.splats(self.console()), self.config.accelerator.real_time
        new, self._heard = titles[self._heard :], len(titles)
        return outcome.complaints(new, real_time=real_time), outcome.short_of_time(new, real_time=real_time)

    def _booted(self) -> Ready:
        try:
            with self._deadline(self.config.boot_deadline_seconds, "end its boot"):
                event = self._event()
        except GuestFailure as error:
            if not self.config.kernel_name or error.outcome.kind is OutcomeKind.LOST_HOST:
                raise
            sentence = f"{self.config.kernel_name} does not boot: {error}"
            raise failure(replace(error.outcome, sentence=sentence, booted=False)) from error
        if _CUT_SHORT in self.console():
            name, memory = self.config.kernel_name or "the kernel", self.config.memory_mib
            sentence = f"A guest of {memory} MiB has no room for {name} and the lab's programs; give it more memory."
            raise failure(Outcome(OutcomeKind.OUT_OF_MEMORY, sentence))
        return Ready(event["release"], event["page_size"], event["cpus"])

    def _prepare_disks(self) -> None:
        """Have each disk take time under another name, if that is wanted.

        Else waits are the emulation's: our kernel and the module are told what a request costs, or would measure them.
        """
        names = [guest_disk.disk_name(self.config.disk_bus, number) for number in range(len(self.config.disks))]
        if not self.config.device:
            # Other kernels have no such files.
            for price in (*(f"/sys/block/{name}/bdi/request_kb" for name in names), _MODULE_REQUEST_KB):
                self.run([":write", price, _REQUEST_KB])
            return
        self.run([":write", f"{_TIMED}/profile", self.config.device.numbers]).checked()
        for name in names:
            self.run([":write", f"{_TIMED}/add", name]).checked()

    def _request(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._last_id += 1
        request = {"id": self._last_id, "argv": list(argv), "env": dict(env or {})}
        # File names need not be UTF-8: they pass through as they are.
        line = (json.dumps(request, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape")
        try:
            self._qemu.control.settimeout(self._remaining())
            self._qemu.control.sendall(line)
        except (BrokenPipeError, ConnectionResetError):
            raise self._failure(self._qemu.ending()) from None

    def _line(self) -> bytes:
        """The next line from the guest, or nothing if QEMU has gone."""
        while b"\n" not in self._received:
            self._qemu.control.settimeout(self._remaining())
            try:
                data = self._qemu.control.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                return b""
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _event(self) -> dict[str, Any]:
        line = self._line()
        if not line:
            raise self._failure(self._qemu.ending())
        event: dict[str, Any] = json.loads(line)
        return event

    def _remaining(self) -> float | None:
        if self._until is None:
            return None
        remaining = self._until - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        return remaining

    @contextmanager
    def _deadline(self, seconds: float | None, what: str) -> Iterator[None]:
        """Bound everything that is sent and received in the block."""
        limit = None if seconds is None else seconds * self.config.accelerator.patience
        self._until = None if limit is None else time.monotonic() + limit
        try:
            yield
        except TimeoutError:
            raise self._hung(f"{what} within {limit:g} s") from None

    def _hung(self, waited: str) -> GuestFailure:
        if self.config.arch.hang_keys:
            self._qemu.ask_for_stacks()
        else:
            self._qemu.force_stacks()
        return failure(classify(self.console(), Ending.DEADLINE, waited=waited))

    def _failure(self, ending: Ending) -> GuestFailure:
        if ending is Ending.DEADLINE:
            return self._hung("end after it had closed its control port")
        words = self._qemu.words() if ending is Ending.LOST else ""
        return failure(classify(self.console(), ending, host_words=words))
