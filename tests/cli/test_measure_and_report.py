# SPDX-License-Identifier: GPL-2.0-only
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foliolab.campaign.sample import Sample
from foliolab.campaign.store import open_store
from foliolab.cli.main import command_line
from foliolab.errors import (
    BadExperiment,
    ChecksFailed,
    NoResult,
    StoreError,
    UnknownCell,
    UnknownVariant,
    UsageError,
)
from tests.samples import sample
from tests.small import small_experiment


def call(*argv: str) -> int:
    arguments = command_line().parse_args(argv)
    status: int = arguments.handler(arguments)
    return status


def fill(store: Path, published: int = 2 << 30) -> None:
    with open_store(store) as opened:
        opened.append(sample(30 << 30))
        opened.append(sample(30 << 30, variant="unpatched", named="unpatched", kernel="k0"))
        opened.append(sample(published, variant="published"))


MODEL = ["--backend", "model"]


@pytest.mark.parametrize(
    ("argv", "error", "words"),
    [
        (["--variant", "off,folio"], UnknownVariant, "no variant 'folio'"),
        (["--cell", "pattern=no-such"], UnknownCell, "matches 'pattern=no-such'"),
        (["--scale", "tiny"], UsageError, "no scale 'tiny'"),
        (["--repetitions", "0"], UsageError, "At least one repetition"),
        (["--arch", "x86_64", "--page-size", "64k"], UsageError, "x86_64 has no pages of 64k"),
        (["--backend", "metal"], UsageError, r"There is no backend 'metal'; known: qemu, host, model\."),
        (["--backend", "host"], UsageError, "takes --host and the name of a machine"),
        (["--host", ""], UsageError, "'' is no destination of ssh"),
        (["--host", "bench1", "--spare", ""], UsageError, "--spare takes a device"),
        (["--spare", "/dev/vdb"], UsageError, "are about the machine of --host"),
        (["--no-watchdog"], UsageError, "are about the machine of --host"),
        (["--no-kexec"], UsageError, "are about the machine of --host"),
        (["--though-in-use"], UsageError, "are about the machine of --host"),
        ([*MODEL, "--accelerator", "tcg"], UsageError, "The model boots no kernel"),
        ([*MODEL, "--profile", "debug"], UsageError, "The model boots no kernel"),
        ([*MODEL, "--arch", "arm64"], UsageError, "The model boots no kernel"),
    ],
)
def test_wrong_requests_end_before_anything_is_built(
    store: Path, argv: list[str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        call("measure", "sparse-mmap", *argv)
    assert not store.exists()


def test_another_program_than_the_model_knows(store: Path) -> None:
    with pytest.raises(UsageError, match="The model knows what sparse-mmap does; mprotect runs 'mprotect'"):
        call("measure", "mprotect", "--backend", "model")


def test_the_model_stands_beside_a_kernel(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = small_experiment(tmp_path)
    file.write_text(file.read_text() + "[agreement]\nread_bytes = 0.03\n")
    argv = ("measure", str(file), "--backend", "model", "--json")
    assert call(*argv) == 0
    found = msgspec.convert(json.loads(capsys.readouterr().out)["samples"], list[Sample])
    assert {each.backend for each in found} == {"model"}
    factors = {"random": 1.01, "stride": 1, "sequential": 0.9}
    with open_store(store) as opened:
        for each in found:
            read_bytes = int(each.metrics["read_bytes"] / factors[str(each.cell["pattern"])])
            metrics = {**each.metrics, "read_bytes": read_bytes}
            opened.append(
                replace(
                    each,
                    key=str(each.cell),
                    backend="qemu-tcg",
                    kernel=replace(each.kernel, hash="k1"),
                    metrics=metrics,
                )
            )
    with pytest.raises(ChecksFailed, match=r"1 of 3 figures .*; the first: sequential, off, read_bytes: -10\.0 %"):
        call(*argv, "--check")
    capsys.readouterr()
    assert call("report", str(file)) == 0
    out = capsys.readouterr().out
    assert "Model against kernel: small" in out
    assert "FAIL 1 of 3 figures" in out
    assert call("report", str(file), "--json") == 0
    rows = json.loads(capsys.readouterr().out)["agreement"]
    assert {row["cell"]["pattern"]: row["within"] for row in rows} == {
        "random": True,
        "stride": True,
        "sequential": False,
    }
    with pytest.raises(ChecksFailed, match="1 of 3 figures of the model"):
        call("report", str(file), "--check")


def test_an_experiment_for_other_machines(store: Path, tmp_path: Path) -> None:
    file = small_experiment(tmp_path)
    file.write_text(file.read_text().replace("[workload]", 'machines = ["arm64-16k", "arm64-64k"]\n[workload]'))
    with pytest.raises(UsageError, match="small is for arm64-16k, arm64-64k only"):
        call("measure", str(file), "--arch", "x86_64")


def test_instructions_take_what_counts_them(store: Path) -> None:
    with pytest.raises(UsageError, match=r"instructions_per_pte takes counting .* use --accelerator icount"):
        call("measure", "mprotect", "--accelerator", "tcg")
    assert not store.exists()


def test_a_malformed_experiment(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("question = \n")
    with pytest.raises(BadExperiment, match="line 1"):
        call("measure", str(file))


def test_report_prints_a_table(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store)
    assert call("report", "sparse-mmap") == 0
    assert "15.0x less" in capsys.readouterr().out


def test_what_options_leave_out_tells_what_is_older_all_the_same(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table of a variant has what a table of all has of it, be it of a kernel, a cell or nothing."""
    with open_store(store) as opened:
        opened.append(sample(1, variant="unpatched", named="unpatched", kernel="k0", workload="old"))
        opened.append(sample(2, kernel="old", cell={"pattern": "sequential"}))
        opened.append(sample(3, kernel="old", variant="published"))
        opened.append(sample(4))
    shown = []
    for options in ([], ["--variant", "off"], ["--cell", "pattern=random"]):
        assert call("report", "sparse-mmap", "--json", *options) == 0
        shown.append([row["metrics"]["read_bytes"]["median"] for row in json.loads(capsys.readouterr().out)["rows"]])
    assert shown == [[4], [4], [4]]
    for older in ("unpatched", "published"):
        with pytest.raises(NoResult, match=f"'{older}'; there are: off"):
            call("report", "sparse-mmap", "--json", "--variant", older)
    with pytest.raises(NoResult, match="pattern=sequential"):
        call("report", "sparse-mmap", "--json", "--cell", "pattern=sequential")
    assert call("report", "sparse-mmap", "--variant", "off") == 0
    assert "Left out: 3 samples of older kernels" in " ".join(capsys.readouterr().out.split())


def test_report_json_is_one_document(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store)
    assert call("report", "--json", "--scale", "quick") == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["variant"] for row in document["rows"]] == ["unpatched", "off", "published"]
    assert {verdict["status"] for verdict in document["verdicts"]} == {"holds", "fails", "not measured"}


def test_report_of_a_timed_disk(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store)
    with open_store(store) as opened:
        timed: dict[str, Any] = {"device": "nvme", "backend": "qemu-icount", "parameters": {"device": "80,3000,0,64"}}
        opened.append(sample(metrics={"read_bytes": 30 << 30, "seconds": 1.5}, **timed))
    for device, devices in (("nvme", {"nvme"}), ("none", {""})):
        assert call("report", "--json", "--device", device) == 0
        assert {row["device"] for row in json.loads(capsys.readouterr().out)["rows"]} == devices
    with pytest.raises(NoResult, match="No sample has the device 'hdd'"):
        call("report", "--device", "hdd")
    with pytest.raises(UsageError, match="--seconds is about a table --by-device"):
        call("report", "--table", "--seconds")
    with pytest.raises(UsageError, match="--by-device is a --table of its own"):
        call("report", "--by-device")
    assert call("report", "--by-device", "--table") == 0
    assert "| cell | seconds of off: nvme |" in capsys.readouterr().out
    assert call("report", "--by-device", "--table", "--seconds") == 0
    assert "| seconds | NVMe |" in capsys.readouterr().out


def test_report_of_an_experiment_whose_file_is_gone(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(store) as opened:
        opened.append(sample(1 << 30, experiment="forgotten"))
    assert call("report", "--markdown") == 0
    assert "### forgotten, scale quick" in capsys.readouterr().out


def test_an_empty_store(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("report", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"rows": [], "verdicts": [], "agreement": []}
    assert call("report") == 0
    assert "Nothing was measured yet" in capsys.readouterr().out
    with pytest.raises(ChecksFailed, match="No expectation could be checked"):
        call("report", "--check")


def test_failed_expectations_matter_with_check_only(store: Path) -> None:
    fill(store)
    assert call("report") == 0
    with pytest.raises(
        ChecksFailed, match=r"published reads at least 20 times less: random: .*: 0\.066667, expected at most 0\.05"
    ):
        call("report", "--check")


def test_expectations_that_hold(store: Path) -> None:
    fill(store, published=1 << 30)
    assert call("report", "--check") == 0


def test_a_damaged_store(store: Path) -> None:
    store.write_text("{}\n")
    with pytest.raises(StoreError, match="Line 1"):
        call("report")
