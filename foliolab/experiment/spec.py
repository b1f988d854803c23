# SPDX-License-Identifier: GPL-2.0-only
"""What an experiment is."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from foliolab.arch import applies
from foliolab.device import Device, device_of
from foliolab.errors import require_known
from foliolab.experiment.cell import Cell
from foliolab.experiment.metrics import METRICS
from foliolab.experiment.variants import Variant
from foliolab.toml import Count, Place, Positive, Share, Text, Texts, Value
from foliolab.vm.accel import Wanted
from foliolab.vm.disk import Filesystem
from foliolab.vm.guest_disk import Bus
from foliolab.vm.numa import Distances, Nodes

Content = Literal["zeros", "stubs", "userland", "programs", "stores", "trees"]
"""What the disk holds: a file of zeros, one of functions of one instruction that return, or the root directory of real
programs; ``programs`` has all of ``userland``, and fio and databases. With ``stores``, each storage engine that the
axis ``store`` names has a disk with its database; with ``trees`` there are directories of many files of zeros."""

ROOTS: frozenset[Content] = frozenset({"userland", "programs"})
"""Contents that are a root directory."""

WITHOUT_FILE: frozenset[Content] = ROOTS | {"stores", "trees"}
"""Contents that are no single file."""

PUBLISHED_FIGURE = "published figure"
"""The value of ``Expectation.relative_to`` that means what was published of the cell, times the scale's factor."""

FLOOR = "floor"
"""The value that means the experiment's floor, as it was for the variant that is judged."""

SIZES = {"memory_bytes": "memory", "file_bytes": "file", "work_bytes": "work", "limit_bytes": "limit"}
"""Parameters that a file gives as sizes such as "20G", and their names there."""


class Parameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=SIZES):
    """The guest and the file that all cells of a scale share."""

    memory_bytes: int
    file_bytes: int = 0
    """0 for a disk without one big file."""
    filesystem: Filesystem
    cpus: Positive
    nodes: Nodes = ()
    """On which memory and processors lie, all of both; empty: there is but one."""
    distances: Distances = ()
    parallel: bool = False
    """Whether processors have to run at the same time, as those of emulated x86_64 never do."""
    read_ahead_kb: Count
    watermark_scale_factor: Positive
    """How much memory is kept free, in 1/10,000 between watermarks; 10 is the kernel's own choice."""
    deadline_seconds: Positive
    """After which a cell counts as a hang, by the host's clock, before any allowance for emulation."""
    fraction: Annotated[float, Meta(gt=0, le=1)] | None = None
    """Share of the file's pages that is touched, for probes that want to be told."""
    content: Content = "zeros"
    trees: str = ""
    """With the content of that name, its directories: "100x4096 4000x64" are two, the first with a hundred files of
    4,096 pages of 4 KiB."""
    work_bytes: int | None = None
    """Of the memory that the probe works on, for probes that want to be told."""
    rounds: Positive | None = None
    """That the probe measures, likewise."""
    limit_bytes: int | None = None
    """Of memory for the control group that the probe works in, likewise."""
    programs: bool = False
    """Whether there is a second disk, mounted on /programs, with the root directory of that name."""
    writable: bool = False
    """Whether the probe may write to the disk; each boot begins with what is on it before."""
    boot_each: bool = False
    """Whether each measurement has a boot of its own, where a kernel learns from those before."""
    disk_bus: Bus = "virtio"
    """Of the only disk."""
    accelerator: Wanted = "auto"
    """What executes the guest, unless the user says otherwise."""
    hardware_counters: bool = False
    """Whether the processor's counters are read around the probe, which costs a little at each change of tasks."""
    device: str = ""
    """Of which kind the disks are that take time, as ``device_of`` takes it; empty if they do not."""

    @property
    def disk(self) -> Device | None:
        """What ``device`` says; UsageError if there is no such disk."""
        return device_of(self.device) if self.device else None

    @property
    def filesystems(self) -> set[Filesystem]:
        """Of all disks; those of programs have no other than XFS."""
        return {self.filesystem, "xfs"} if self.programs or self.content == "stores" else {self.filesystem}

    def recorded(self) -> dict[str, str | int | float]:
        """What a sample says of them: what decides the result and is not said by its backend.

        Defaults are left out, so that a parameter that is added changes no older sample.
        """
        fields = structs.asdict(self)
        del fields["deadline_seconds"], fields["accelerator"], fields["parallel"]
        if self.disk:
            fields["device"] = self.disk.numbers  # a name may come to mean others
        for field in structs.fields(self):
            if field.name in fields and fields[field.name] == field.default:
                del fields[field.name]
        if self.nodes:
            fields["nodes"] = " ".join(node.text for node in self.nodes)
        if self.distances:
            fields["distances"] = " ".join(",".join(map(str, row)) for row in self.distances)
        return fields


@dataclass(frozen=True)
class Scale:
    """A size at which the experiment can be run."""

    name: str
    factor: float
    """What a published count is multiplied with to be comparable."""
    parameters: Parameters
    cells: tuple[Cell, ...]
    variants: tuple[Variant, ...]
    """That are measured unless the user chooses others."""
    repetitions: int


@dataclass(frozen=True)
class Published:
    """A published result, at factor 1."""

    cell: Cell
    variants: tuple[str, ...]
    machines: tuple[str, ...]
    """That it is comparable with; empty: all."""
    values: Mapping[str, float]
    """By metric."""


class Expectation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claim that the medians of ``metrics``, divided by what they are relative to, if anything, lie within bounds."""

    says: Text
    scales: Texts = ()
    """At which the claim is made; empty: all."""
    cell: dict[str, Any]
    """Axis values; the claim is made for every cell that has them."""
    variants: Texts
    metrics: Texts
    relative_to: Text | None = None
    """A variant, PUBLISHED_FIGURE, FLOOR, or None: the bounds are of the metric itself."""
    where: dict[str, Any] = {}
    """Axis values that the cell of the variant in ``relative_to`` has instead; empty: it is the cell itself."""
    at_least: Share | None = None
    at_most: Share | None = None
    machines: Texts = ()
    """On which the claim is made; empty: all."""

    def check(self, place: Place, variants: Collection[str], metrics: Collection[str]) -> None:
        """Complain if it is about what there is not, or claims nothing, or what can never be."""
        place.at("variants").all_of(self.variants, variants)
        place.at("metrics").all_of(self.metrics, metrics)
        if self.at_least is None and self.at_most is None:
            place.at("at_least").fail("is missing, and 'at_most' as well")
        if not self.at_least and self.at_most is None:
            place.at("at_least").fail("is 0, which nothing falls below, and 'at_most' is missing")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            place.at("at_least").fail("is more than 'at_most'")
        if self.relative_to in self.variants and not self.where:
            place.at("relative_to").fail(f"is '{self.relative_to}', which is one of the variants themselves")


@dataclass(frozen=True)
class Experiment:
    name: str
    question: str
    metric: str
    """The counter that must move."""
    floor: str | None
    """The metric below which ``metric`` cannot come, if there is one."""
    columns: tuple[str, ...]
    """Further metrics that its tables show."""
    machines: tuple[str, ...]
    """That it can be run on; empty: all."""
    argv: tuple[str, ...]
    """The probe's command; {data}, the file's path in the guest, {repetition} and parameters stand in braces."""
    scales: Mapping[str, Scale]
    published: tuple[Published, ...]
    expectations: tuple[Expectation, ...]
    notes: tuple[str, ...]
    """Sentences that belong under every table of this experiment."""
    aliases: Mapping[str, Mapping[str, Value]]
    """Short names, and the axis values that all cells have which are called so."""
    agreement: Mapping[str, float]
    """By metric, how far the model may be from a kernel, as a share of what the kernel does."""
    compared: tuple[str, ...]
    """Metrics by which ``lab compare`` tells whether a variant is worse; empty: it leaves this experiment alone."""
    unaffected_by: tuple[str, ...]
    """Topics of our series that do not change its figures, but for less than boots differ."""

    @property
    def reads_data(self) -> bool:
        """Whether its probe uses what is on the data disk. Others name disks, or use memory alone."""
        return any("{data}" in word for word in self.argv)

    @property
    def names_disks(self) -> bool:
        """Whether its probe works on disks by their names, such as /dev/vda."""
        return any(word.startswith("/dev/") for word in self.argv)

    def scale(self, name: str) -> Scale:
        require_known(f"{self.name} has no scale", [name], self.scales)
        return self.scales[name]

    def published_for(self, scale: Scale, variant: str, cell: Cell, machine: str) -> dict[str, float]:
        """Published values by metric, times the scale's factor where the metric scales."""
        found: dict[str, float] = {}
        for entry in self.published:
            if variant in entry.variants and entry.cell == cell and applies(entry.machines, machine):
                found = {**entry.values, **found}
        return {name: value * scale.factor if METRICS[name].scales else value for name, value in found.items()}

    def command(self, cell: Cell, parameters: Parameters, repetition: int, data: str) -> list[str]:
        """The probe's arguments for one cell; ``data`` is the file's path in the guest."""
        values = {**parameters.recorded(), "data": data, "repetition": repetition}
        argv = [part.format(**values) for part in self.argv]
        for name, value in cell.axes:
            argv += [f"--{name}", str(value)]
        return argv
