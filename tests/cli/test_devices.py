# SPDX-License-Identifier: GPL-2.0-only
"""Disks that take time on the command line: what is refused, before anything is fetched, built or booted."""

from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.analyse.compared import Question
from foliolab.arch import X86_64
from foliolab.campaign.measure import Request, planned
from foliolab.cli.in_guest import Asked
from foliolab.cli.main import command_line, main
from foliolab.cli.measure import requested
from foliolab.errors import SourceError, UsageError
from foliolab.experiment.load import find_experiment
from foliolab.kernel.built import BuiltKernel
from tests.small import small_experiment

COMMANDS = {
    "measure": ["measure", "sparse-mmap"],
    "model": ["measure", "sparse-mmap", "--backend", "model"],
    "compare": ["compare"],
    "stored": ["compare", "--no-run"],
    "exec": ["exec"],
    "record": ["trace", "record", "--output", "x.trace", "--disk", "ext4:64M"],
    "replay": ["trace", "replay"],
}
PROGRAM = ["--", "/no/such/program"]
PROGRAMS = ("exec", "record")
"""Of the commands, those that take one. That there is none is told after what is wrong with a disk."""
WRONG = {
    "nosuch": "There is no device 'nosuch'; there are nvme, sata, cloud, hdd, remote, or four numbers",
    "": "There is no device ''; there are nvme",
    "1,2": "There is no device '1,2'; there are nvme",
    "-1,1,1,1": "There is no device '-1,1,1,1'; there are nvme",
    "0,0,0,0": "There is no such device as '0,0,0,0': the latency is up to 100,000,000 us, the speed 1 to 18,000 MB/s",
}


@pytest.fixture
def cache(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, with a store that is not there yet."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def words(command: str, *options: str) -> list[str]:
    return [*COMMANDS[command], *options, *(PROGRAM if command in PROGRAMS else [])]


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The status, and the sentence, which is all that is printed."""
    status = main(argv)
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("lab: ")
    return status, line.removeprefix("lab: ")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_disk(text: str, command: str, cache: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, sentence = refused(words(command, "--device", text), capsys)
    assert status == 2
    assert sentence.startswith(WRONG[text])
    assert not cache.exists() and not store.exists()


@pytest.mark.parametrize(
    ("command", "experiment"),
    [("measure", "workloads"), ("compare", "workloads"), ("compare", "mprotect-calls"), ("measure", "contention")],
)
def test_experiments_that_read_no_disk(
    command: str, experiment: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = refused([command, experiment, "--device", "hdd"], capsys)
    assert found == (2, f"{experiment} reads no timed disk, so it goes with no --device.")
    assert not cache.exists()


def test_those_are_left_out_where_none_is_named() -> None:
    def names(device: str | None) -> set[str]:
        parts = Question("unpatched", ["adaptive"], "x86_64", 4096, device).parts([], "quick", [], [])
        return {part.experiment.name for part in parts}

    assert names(None) - names("hdd") == {"workloads", "mprotect-calls"}


def test_a_disk_has_one_name_however_its_numbers_are_written() -> None:
    arguments = command_line().parse_args(["measure", "sparse-mmap", "--device", "0010,125,0,1"])
    assert requested(arguments).device == "10,125,0,1"
    assert requested(command_line().parse_args(["measure", "sparse-mmap"])).device is None


@pytest.mark.parametrize("command", ["measure", "exec", "record"])
@pytest.mark.parametrize("accelerator", ["kvm", "tcg"])
def test_accelerators_whose_clock_does_not_count_instructions(
    accelerator: str, command: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = refused(words(command, "--device", "nvme", "--accelerator", accelerator), capsys)
    expected = f"A disk takes time on a clock of instructions: use --accelerator icount, not {accelerator}."
    assert found == (2, expected)
    assert not cache.exists()


@pytest.mark.parametrize("command", PROGRAMS)
@pytest.mark.parametrize("options", [["--device", "nvme"], ["--accelerator", "icount"]], ids=" ".join)
def test_guests_that_count_instructions_have_one_cpu(
    options: list[str], command: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = refused(words(command, *options, "--cpus", "2"), capsys)
    assert found == (2, "qemu-icount runs guests of one CPU only, not of 2.")
    assert not cache.exists()


@pytest.mark.parametrize("old", ["debian:6.1", "image:debian:6.1", "image:debian:6.1+module"])
@pytest.mark.parametrize("command", ["measure", "compare", "exec"])
def test_a_kernel_that_is_too_old_is_refused_before_another_is_built(
    old: str, command: str, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "program").write_bytes(b"\x7fELF\x02\x01\x01".ljust(18, b"\0") + b"\x3e".ljust(46, b"\0"))
    kernels = ["--kernel", "patched", "--kernel", old]
    argv = [*COMMANDS[command], "--device", "nvme", "--arch", "x86_64", *kernels]
    argv += ["--", str(tmp_path / "program")] if command == "exec" else []
    expected = f"Timed disks take Linux 6.11 or newer, not 6.1 ({old})."
    assert refused(argv, capsys) == (20, expected)
    assert not cache.exists()


def test_the_model_takes_no_kernel_whatever_the_disk(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--kernel", "image:debian:6.1"], ["--accelerator", "kvm"], ["--accelerator", "icount"]):
        status, sentence = refused(words("model", "--device", "nvme", *options), capsys)
        assert (status, sentence[:27]) == (2, "The model boots no kernel: ")
    assert not cache.exists()


def test_a_disk_of_an_experiments_own_is_looked_at_as_well(tmp_path: Path) -> None:
    file = small_experiment(tmp_path)
    text = file.read_text()

    def request(device: str, *kernels: str, backend: str = "qemu") -> Request:
        file.write_text(text.replace("cpus = 2\n", f'cpus = 2\ndevice = "{device}"\n'))
        return Request(find_experiment(str(file)), kernels=kernels, backend=backend)

    plan, *_ = planned(request("hdd", "debian:6.12"))
    assert plan.scale.parameters.device == "hdd"
    with pytest.raises(SourceError, match=r"not 6\.1 \(debian:6\.1\)"):
        planned(request("hdd", "debian:6.12", "debian:6.1"))
    for backend in ("qemu", "model"):
        with pytest.raises(UsageError, match="There is no device 'tape'"):
            planned(request("tape", backend=backend))
    with pytest.raises(UsageError, match="There is no device ''"):
        planned(replace(request("hdd"), device=""))


@pytest.mark.parametrize(
    ("options", "packaged", "told"),
    [
        (["--accelerator", "icount"], "", "nolapic_timer"),
        (["--accelerator", "icount"], "6.12.43", ""),
        (["--device", "nvme"], "", "nolapic_timer"),
        (["--device", "nvme"], "6.12.43", "nolapic_timer init_on_alloc=0"),
        (["--accelerator", "tcg"], "", ""),
    ],
    ids=str,
)
def test_guests_that_count_instructions_calibrate_no_timer(
    options: list[str], packaged: str, told: str, tmp_path: Path
) -> None:
    """Nor those that make their disks."""
    image = tmp_path / X86_64.image
    image.write_bytes(bytes(1024))
    kernel = BuiltKernel("0", image, "k", "lab", X86_64, "6.12.43", 4096, ours=False, packaged=packaged)
    argv = ["exec", "--arch", "x86_64", *options, *PROGRAM]
    asked = Asked.by(command_line().parse_args(argv))
    guests = asked.guests({"k": kernel}, ["measure"], {})
    assert guests.configs["k"].boot_arguments == guests.helper.boot_arguments == told
    assert guests.configs["k"].device == asked.device
    assert guests.helper.device is None
