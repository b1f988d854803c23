# SPDX-License-Identifier: GPL-2.0-only
"""Cases for who has no lab."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

import pytest

from foliolab.analyse.rows import group_samples
from foliolab.errors import UsageError
from foliolab.experiment.load import experiment_names, find_case, find_experiment
from foliolab.experiment.variants import load_variants
from foliolab.report.case import RULES, ExportedCase, c_file, case_of, script
from tests.samples import sample
from tests.small import small_experiment


def case(name: str, *cells: Mapping[str, str | int], windows: tuple[int, ...] = ()) -> ExportedCase:
    """Of an experiment, the cells that have one of these values each."""
    experiment = find_experiment(name)
    scale = experiment.scale("quick")
    chosen = [each for each in scale.cells if any(each.matches(values) for values in cells or [{}])]
    return case_of("", experiment, scale, chosen, windows)


def test_a_single_cell_gives_its_name_and_the_options() -> None:
    mine = case("sparse-mmap", {"stride": 2053})
    text = script(mine, [])
    assert mine.name == "sparse-mmap-stride-2053"
    assert "name=sparse-mmap-stride-2053\nmemory=1073741824" in text
    assert "windows='8192'" in text
    options = '--file "$place/data" --fraction 0.01 --seed 1 ${root:+--drop-caches} --pattern stride --stride 2053 "$@"'
    assert options in text
    assert "\thead -c" not in text and 'head -c 2684354560 /dev/urandom >"$place/data"' in text
    assert "cells ', MADV_RANDOM' --hint random" in text


def test_cells_that_differ_have_rows_of_their_own() -> None:
    mine = case("strangers", {"reader": "records"})
    text = script(mine, [])
    assert mine.name == "strangers-records"
    assert '--reader records "$@"' in text
    rows = re.findall(r'^\trows "(.*)\$words" (.*) "\$@"$', text, re.MULTILINE)
    kinds = ["none", "many-files", "random", "scan", "exec"]
    assert rows == [(kind, f"--stranger {kind}") for kind in kinds]
    assert 'mkdir "$place/5x131072"' in text and "$(seq 0 9999)" in text
    assert "MADV_RANDOM" not in text


def test_windows_are_those_of_the_cells_unless_others_are_wanted() -> None:
    assert case("many-files", {"files": 100}).windows == (128, 4096)
    assert case("many-files", {"files": 100}, windows=(16,)).windows == (16,)
    assert "--read_ahead_kb" not in script(case("many-files", {"files": 100}), [])


def test_what_makes_its_own_data_is_given_the_window() -> None:
    text = script(case("workloads", {"workload": "mmap-zipf"}), [])
    assert '--read-ahead-kb "$kb"' in text
    assert "urandom" not in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exec-text", "exec-text works on a disk of 'stubs', which"),
        ("stores", "stores works on a disk of 'stores', which"),
        ("real-text", "real-text works on a disk of 'userland', which"),
        ("strided-reclaim", "strided-reclaim works on a disk of 'programs', which"),
        ("contention", "contention works on a whole disk of a guest, which"),
    ],
)
def test_what_only_a_guest_has_is_refused(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        case(name)


def test_a_program_of_somebody_else_is_refused(tmp_path: Path) -> None:
    file = small_experiment(tmp_path)
    file.write_text(file.read_text().replace('"sparse-mmap"', '"mine"'))
    with pytest.raises(UsageError, match=r"^small runs 'mine', which is no program of guest/\.$"):
        case(str(file))


def test_a_name_has_to_be_fit_for_a_program() -> None:
    experiment = find_experiment("sparse-mmap")
    scale = experiment.scale("quick")
    with pytest.raises(UsageError, match=r"^'a b' is no name for a program"):
        case_of("a b", experiment, scale, scale.cells, ())


def test_the_rules_are_those_that_the_lab_switches_off() -> None:
    switches = dict(load_variants()["off"].switches)
    zeros = [name for name, value in switches.items() if value == 0]
    paths = [name if name.startswith("/") else f"/sys/kernel/mm/{name}" for name in zeros]
    assert [path for path in paths if not any(fnmatch(path, rule) for rule in RULES)] == []


def test_figures_of_the_case_are_in_a_comment() -> None:
    cell = {"pattern": "random"}
    samples = [
        sample(3 << 20, cell=cell, variant="off", metrics={"read_bytes": 3 << 20, "seconds": 1.5}),
        sample(9 << 20, cell=cell, variant="retry"),
        sample(9 << 20, cell=cell, variant="off", scale="full"),
        sample(9 << 20, cell=cell, variant="off", experiment="access-patterns"),
        sample(9 << 20, cell={"pattern": "sequential"}, variant="off"),
    ]
    comment = [
        line for line in script(case("sparse-mmap", cell), group_samples(samples)).splitlines() if line[:1] == "#"
    ]
    # Seconds of an emulated guest say nothing.
    assert [line.split() for line in comment if " off " in line] == [
        ["#", "8192", "random,", "off", "-", "3.0", "-", "-", "-"]
    ]
    assert [line for line in comment if "9.0" in line] == []


def test_figures_name_the_disk_whose_seconds_they_are() -> None:
    cell = {"pattern": "random"}
    timed = sample(metrics={"read_bytes": 3 << 20, "seconds": 1.5}, cell=cell, backend="qemu-icount", device="nvme")
    text = script(case("sparse-mmap", cell), group_samples([timed]))
    assert "with that memory, qemu-icount, device nvme:" in text
    assert "1.500" in text


def test_the_comment_says_which_commit_it_is_of_and_how_to_compile() -> None:
    mine = case("sparse-mmap", {"pattern": "random"})
    text = c_file(mine, "v1-2-gabc")
    comment = " ".join(text.partition("*/")[0].replace("\n *", " ").split())
    assert text.startswith(
        "// SPDX-License-Identifier: GPL-2.0-only\n/*\n * guest/windows/sparse-mmap.c of foliolab (v1"
    )
    assert comment.endswith("To compile: cc -O2 -pthread -o sparse-mmap-random sparse-mmap-random.c")


def _portable(name: str) -> bool:
    try:
        return bool(case(name))
    except UsageError:
        return False


def test_a_report_is_told_in_its_own_words() -> None:
    experiment, alias = find_case("R10")
    scale = experiment.scale("full")
    cells = [cell for cell in scale.cells if cell.matches(alias)]
    text = script(case_of("R10", experiment, scale, cells, ()), [])
    assert "# reports, writes: What do" in text and "# writes: one byte is written to each of" in text
    assert "openers" not in text
    assert text.count('\trows "') == 1


@pytest.mark.parametrize("name", [name for name in experiment_names() if _portable(name)])
def test_every_script_is_one_that_a_shell_takes(name: str) -> None:
    text = script(case(name), [])
    assert "@" not in text.replace('"$@"', "")
    checks = [["sh", "-n"], *([["shellcheck", "-"]] if shutil.which("shellcheck") else [])]
    for argv in checks:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
