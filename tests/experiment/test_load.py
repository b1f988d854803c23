# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.errors import BadExperiment
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import experiment_names, find_case, find_experiment
from foliolab.experiment.variants import load_variants
from tests.experiment.good import GOOD, write


def test_everything_is_read(tmp_path: Path) -> None:
    mine = find_experiment(write(tmp_path, GOOD))
    assert mine.name == "mine"
    quick = mine.scale("quick")
    assert (quick.parameters.memory_bytes, quick.parameters.file_bytes) == (256 << 20, 16 << 20)
    assert [cell.label for cell in quick.cells] == ["random", "stride 3", "stride 5"]
    assert [variant.name for variant in quick.variants] == ["off", "published"]
    assert quick.repetitions == 2
    random = Cell.of({"pattern": "random"})
    assert mine.published_for(quick, "off", random, "x86_64-4k") == {"read_bytes": 1 << 30, "seconds": 3.5}
    assert mine.published_for(quick, "published", random, "x86_64-4k") == {}
    assert (mine.expectations[0].at_most, mine.expectations[0].machines) == (1.5, ())
    assert mine.compared == ()


def test_metrics_that_can_get_worse(tmp_path: Path) -> None:
    mine = find_experiment(write(tmp_path, 'compared = ["major_faults", "read_bytes"]\n' + GOOD))
    assert mine.compared == ("major_faults", "read_bytes")
    with pytest.raises(BadExperiment, match=r"'compared' names 'speed', which is not one of read_bytes"):
        find_experiment(write(tmp_path, 'compared = ["speed"]\n' + GOOD))


def test_a_scale_overrides_what_it_names(tmp_path: Path) -> None:
    small = find_experiment(write(tmp_path, GOOD)).scale("small")
    assert (small.parameters.fraction, small.parameters.cpus, small.parameters.read_ahead_kb) == (0.25, 1, 128)
    assert ([cell.label for cell in small.cells], small.repetitions) == (["random"], 1)


def test_the_command_has_the_cell_s_axes_as_options(tmp_path: Path) -> None:
    mine = find_experiment(write(tmp_path, GOOD))
    quick = mine.scale("quick")
    command = mine.command(quick.cells[1], quick.parameters, 7, "/data/file")
    assert " ".join(command) == "sparse-mmap --file /data/file --fraction 0.5 --seed 7 --pattern stride --stride 3"


FIT = """
[[published]]
cell = { pattern = "random" }
variants = ["off"]
machines = ["arm64-4k", "arm64-16k"]
contpte_share = 0.05
tlb_entries = 800
[[published]]
cell = { pattern = "random" }
variants = ["off"]
contpte_share = 0.0
[[expect]]
says = "absolutely"
scales = ["quick"]
cell = { pattern = "random" }
variants = ["published"]
metrics = ["contpte_share"]
at_least = 0.9
machines = ["arm64-4k"]
"""


def test_published_values_of_any_metric_scale_if_they_are_counts(tmp_path: Path) -> None:
    mine = find_experiment(write(tmp_path, GOOD + FIT))
    quick, random = mine.scale("quick"), Cell.of({"pattern": "random"})
    everywhere = {"read_bytes": 1 << 30, "seconds": 3.5}
    on_arm = {**everywhere, "contpte_share": 0.05, "tlb_entries": 400}
    assert mine.published_for(quick, "off", random, "arm64-16k") == on_arm
    assert mine.published_for(quick, "off", random, "arm64-64k") == {**everywhere, "contpte_share": 0}


def test_bounds_may_be_absolute_and_for_some_machines(tmp_path: Path) -> None:
    expectation = find_experiment(write(tmp_path, GOOD + FIT)).expectations[1]
    assert (expectation.relative_to, expectation.at_least, expectation.machines) == (None, 0.9, ("arm64-4k",))


def test_cells_have_other_names(tmp_path: Path) -> None:
    text = GOOD + '[aliases]\nA1 = { pattern = "stride", stride = 5 }\n'
    assert find_experiment(write(tmp_path, text)).aliases == {"A1": {"pattern": "stride", "stride": 5}}
    experiment, values = find_case("R3")
    assert (experiment.name, values["case"]) == ("reports", "pieces")
    assert find_case("sparse-mmap") == (find_experiment("sparse-mmap"), {})


def test_how_far_the_model_may_be_off(tmp_path: Path) -> None:
    text = GOOD + "[agreement]\nread_bytes = 0.03\nmajor_faults = 0\n"
    assert find_experiment(write(tmp_path, text)).agreement == {"read_bytes": 0.03, "major_faults": 0}
    assert find_experiment(write(tmp_path, GOOD)).agreement == {}


def test_what_is_not_named_is_not_there(tmp_path: Path) -> None:
    text = GOOD.replace('floor = "floor_bytes"\n', 'columns = ["tlb_entries"]\nmachines = ["x86_64-4k"]\n')
    text = text.replace('"--fraction", "{fraction}"', '"--size", "{file_bytes}"').replace("fraction = 0.5\n", "")
    mine = find_experiment(write(tmp_path, text.replace("cpus = 2", 'cpus = 2\ncontent = "stubs"')))
    quick = mine.scale("quick")
    assert (mine.floor, mine.columns, mine.machines) == (None, ("tlb_entries",), ("x86_64-4k",))
    assert (quick.parameters.fraction, quick.parameters.content) == (None, "stubs")
    assert mine.command(quick.cells[0], quick.parameters, 1, "/f")[3:5] == ["--size", str(16 << 20)]


@pytest.mark.parametrize("content", ["userland", "programs"])
def test_a_disk_of_programs_has_no_file(tmp_path: Path, content: str) -> None:
    text = GOOD.replace('"ext4"', f'"xfs"\ncontent = "{content}"')
    text = text.replace('file = "16M"\n', "").replace('file = "8M"\n', "")
    parameters = find_experiment(write(tmp_path, text)).scale("quick").parameters
    assert (parameters.content, parameters.file_bytes) == (content, 0)
    assert "file_bytes" not in parameters.recorded()


def test_what_a_probe_of_memory_wants_to_be_told(tmp_path: Path) -> None:
    more = 'cpus = 2\nwork = "128M"\nrounds = 4\nlimit = "64M"\naccelerator = "icount"\n'
    more += "programs = true\nwritable = true\nboot_each = true"
    text = GOOD.replace("cpus = 2", more).replace(
        '"--fraction", "{fraction}"', '"--bytes", "{work_bytes}", "{rounds}", "{limit_bytes}"'
    )
    mine = find_experiment(write(tmp_path, text))
    quick = mine.scale("quick")
    assert (quick.parameters.writable, quick.parameters.boot_each, quick.parameters.accelerator) == (
        True,
        True,
        "icount",
    )
    assert mine.command(quick.cells[0], quick.parameters, 1, "/f")[3:7] == [
        "--bytes",
        str(128 << 20),
        "4",
        str(64 << 20),
    ]
    recorded = quick.parameters.recorded()
    assert (recorded["work_bytes"], recorded["rounds"]) == (128 << 20, 4)
    assert recorded["writable"] is True and recorded["boot_each"] is True
    assert (recorded["limit_bytes"], recorded["programs"]) == (64 << 20, True)
    assert "accelerator" not in recorded, "the backend says it"


def test_a_parameter_that_has_its_default_changes_no_older_sample(tmp_path: Path) -> None:
    assert find_experiment(write(tmp_path, GOOD)).scale("quick").parameters.recorded() == {
        "memory_bytes": 256 << 20,
        "file_bytes": 16 << 20,
        "filesystem": "ext4",
        "cpus": 2,
        "read_ahead_kb": 128,
        "watermark_scale_factor": 10,
        "fraction": 0.5,
    }


@pytest.mark.parametrize("name", experiment_names())
def test_our_own_experiments_load(name: str) -> None:
    experiment = find_experiment(name)
    full, quick = experiment.scale("full"), experiment.scale("quick")
    assert full.factor == 1
    assert quick.parameters.file_bytes == full.parameters.file_bytes * quick.factor
    assert quick.parameters.memory_bytes == full.parameters.memory_bytes * quick.factor


FAULT_FOLIOS = "lru_gen/fault_folios"
NOT_PUBLISHED = {"/sys/kernel/debug/mmap_readahead/text_in_windows", "mmap_readahead/adaptive"}


def test_our_own_variants_load() -> None:
    variants = load_variants()
    assert {"unpatched", "off", "published", "adaptive", "address", "retry"} <= set(variants)
    assert variants["unpatched"].switches == variants["adaptive"].switches == ()
    assert {value for name, value in variants["off"].switches if name != FAULT_FOLIOS} == {0}
    assert dict(variants["off"].switches)[FAULT_FOLIOS] == "active"
    published = dict(variants["published"].switches)
    assert {name for name, value in published.items() if value != 1} == NOT_PUBLISHED | {FAULT_FOLIOS}
    assert dict(variants["off"].switches).keys() == dict(variants["published"].switches).keys()
