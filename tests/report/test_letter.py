# SPDX-License-Identifier: GPL-2.0-only
import json
from pathlib import Path

from foliolab.campaign.sample import Sample
from foliolab.experiment.load import find_experiment
from foliolab.kernel.source import Source
from foliolab.report.letter import letter
from foliolab.reproduce.released import read_released, with_released, write_released
from tests.cli.command import lab
from tests.conftest import reduced
from tests.samples import sample

GIB = 1 << 30
OURS = "debian:7.3+ours"


def sent(*samples: Sample, kernel: str = OURS) -> str:
    return letter(samples, {"sparse-mmap": find_experiment("sparse-mmap")}, kernel)


def test_it_has_the_figures_of_its_kernel_and_of_those_beside() -> None:
    words = sent(
        sample(24 * GIB, variant="debian:7.3", named="debian:7.3", kernel="k73"),
        sample(3 * GIB, variant=f"adaptive on {OURS}", named=OURS, kernel="k73ours"),
        sample(GIB, named="patched", kernel="k612", scale="full"),
        sample(GIB, named=OURS, kernel="policy", backend="model", variant="adaptive"),
    )
    assert "\nsparse-mmap, scale quick, x86_64 with 4 KiB pages, backend qemu-tcg:\n" in words
    rows = [line.split() for line in words.splitlines() if OURS in line and "GiB" not in line]
    assert ["adaptive", "on", OURS, "3.000", "322,122,547", "8.0x", "less", "1"] in rows
    assert "  random  debian:7.3                   24.000 " in words
    assert "k73ours" in words
    assert "scale full" not in words
    assert "Modelled" not in words
    assert max(map(len, words.splitlines())) <= 76


def test_it_says_how_to_measure_where_nothing_was() -> None:
    words = sent(sample(GIB, named="patched"))
    assert "Nothing of this kernel has been measured yet." in words
    assert words.endswith(f"\n    ./lab measure sparse-mmap --kernel {OURS}\n")


def test_what_is_shipped_counts_where_the_store_has_nothing_newer(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl.xz"
    write_released([sample(5 * GIB, named=OURS, kernel="shipped", recorded="2026-02-02T00:00:00+00:00")], file)
    older = sample(7 * GIB, named=OURS, kernel="older", recorded="2026-01-01T00:00:00+00:00")
    newer = sample(9 * GIB, named=OURS, kernel="newer", recorded="2026-03-03T00:00:00+00:00")
    for here, kernel in (([], "shipped"), ([older], "shipped"), ([older, newer], "newer")):
        assert f"({kernel})" in sent(*with_released(here, file))


def test_an_export_of_a_fresh_clone_has_figures(source: Source, tmp_path: Path) -> None:
    """On a source with only those files that the series changes."""
    sources = tmp_path / "cache/sources"
    reduced(source, sources / "small/pristine")
    (sources / "debian.json").write_text(json.dumps({"home": "small"}))
    places = {"FOLIOLAB_CACHE": str(tmp_path / "cache"), "FOLIOLAB_RESULTS": str(tmp_path / "results")}
    done = lab("kernel", "export", str(tmp_path / "out"), **places)
    assert done.returncode == 0, done.stderr
    words = (tmp_path / "out/0000-cover-letter.patch").read_text()
    newest = [each for each in read_released() if each.kernel.name == "patched" and each.backend != "model"][-1]
    assert f"({newest.kernel.hash})" in words
    assert "Nothing of this kernel" not in words
