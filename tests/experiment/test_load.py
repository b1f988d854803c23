# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.errors import BadExperiment, UnknownExperiment, UsageError
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import experiment_names, find_experiment
from foliolab.experiment.variants import load_variants

GOOD = """
question = "Does it?"
metric = "read_bytes"
floor = "floor_bytes"
repetitions = 2
variants = ["off", "published"]
cells = [{ pattern = "random" }, { pattern = "stride", stride = [3, 5] }]
[workload]
argv = ["sparse-mmap", "--file", "{data}", "--fraction", "{fraction}", "--seed", "{repetition}"]
[parameters]
filesystem = "ext4"
cpus = 2
read_ahead_kb = 128
watermark_scale_factor = 10
fraction = 0.5
deadline_seconds = 60
[scales.quick]
factor = 0.5
memory = "256M"
file = "16M"
[scales.small]
factor = 0.25
memory = "128M"
file = "8M"
fraction = 0.25
cpus = 1
repetitions = 1
variants = ["off"]
cells = [{ pattern = "random" }]
[[published]]
cell = { pattern = "random" }
variants = ["off"]
read_gib = 2
seconds = 3.5
[[expect]]
says = "it does"
scales = ["quick"]
cell = { pattern = "random" }
variants = ["off"]
metrics = ["read_bytes"]
relative_to = "published figure"
at_most = 1.5
"""


def write(tmp_path: Path, text: str) -> str:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return str(file)


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
    assert mine.regress == ()


def test_metrics_that_can_get_worse(tmp_path: Path) -> None:
    mine = find_experiment(write(tmp_path, 'regress = ["major_faults", "read_bytes"]\n' + GOOD))
    assert mine.regress == ("major_faults", "read_bytes")
    with pytest.raises(BadExperiment, match=r"'regress' names 'speed', which is not one of read_bytes"):
        find_experiment(write(tmp_path, 'regress = ["speed"]\n' + GOOD))


def test_kernels_are_of_all_scales_but_those_that_name_others(tmp_path: Path) -> None:
    named = 'kernels = ["debian:6.12", "debian:7.3"]\n' + GOOD.replace("cpus = 1", 'cpus = 1\nkernels = ["patched"]')
    mine = find_experiment(write(tmp_path, named))
    assert (mine.scale("quick").kernels, mine.scale("small").kernels) == (("debian:6.12", "debian:7.3"), ("patched",))
    assert find_experiment(write(tmp_path, GOOD)).scale("quick").kernels == ()


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


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('question = "Does it?"', 'question = "Does it?'), r"not valid TOML: .*line 2"),
        (('question = "Does it?"', ""), r"'question' is missing"),
        (("cpus = 2", "cpus = 0"), r"'scales.quick.cpus' is wrong: expected `int` >= 1"),
        (("cpus = 2", "cpus = 2\nwritable = 1"), r"'scales.quick.writable' is wrong: expected `bool`, got `int`"),
        (("cpus = 2", "cpus = 2\nrounds = 0"), r"'scales.quick.rounds' is wrong: expected `int` >= 1"),
        (("cpus = 2", 'cpus = 2\nwork = "much"'), r"'scales.quick.work' is wrong: 'much' is not a size"),
        (
            ("cpus = 2", 'cpus = 2\naccelerator = "abacus"'),
            r"'scales.quick.accelerator' has to be one of auto, kvm, tcg, icount",
        ),
        (("cpus = 2", "cpus = true"), r"'scales.quick.cpus' is wrong: expected `int`, got `bool`"),
        (("fraction = 0.5", "fraction = -1"), r"'scales.quick.fraction' is wrong: expected `float` > 0.0"),
        (('memory = "256M"', "memory = 256"), r"'scales.quick.memory' is wrong: '256 without quotes' is not a size"),
        (('file = "16M"', ""), r"'scales.quick.file' is missing"),
        (("[parameters]", '[parameters]\ntrees = ["1x1"]'), r"'scales.quick.trees' is not for disks of zeros"),
        (('memory = "256M"', 'memory = "lots"'), r"'scales.quick.memory' is wrong: 'lots' is not a size"),
        (('filesystem = "ext4"', 'filesystem = "ntfs"'), r"filesystem' has to be one of ext4, xfs"),
        (('metric = "read_bytes"', 'metric = "reads"'), r"'metric' names 'reads', which is not one of read_bytes"),
        (('["off", "published"]', '["off", "sereis"]'), r"'variants' names 'sereis', which is not one of unpatched"),
        (("[workload]", "colour = 1\n[workload]"), r"'colour' is not a key that is known here"),
        (("[parameters]", "[parameters]\nswap = 1"), r"'scales.quick.swap' is not a key that is known here"),
        (("{fraction}", "{share}"), r"'workload.argv' has '\{share\}', but at scale 'quick' only \{memory_bytes\}, "),
        (("{fraction}", "{data[x]}"), r"'workload.argv' has '\{data\[x\]\}', but at scale 'quick' only"),
        (("fraction = 0.5\n", ""), r"'workload.argv' has '\{fraction\}', but at scale 'quick' only"),
        (("[parameters]", '[parameters]\ncontent = "userland"'), "'scales.quick.filesystem' has to be xfs"),
        (('"ext4"', '"xfs"\ncontent = "stores"'), "'scales.quick.filesystem' has to be ext4"),
        (("[parameters]", '[parameters]\ncontent = "stores"'), "'scales.quick.content' takes cells that each name"),
        (("[parameters]", '[parameters]\ncontent = "noise"'), r"'scales.quick.content' has to be one of zeros, stubs"),
        (("[workload]", 'columns = ["speed"]\n[workload]'), r"'columns' names 'speed', which is not one of read_bytes"),
        (
            ("[workload]", 'machines = ["arm64"]\n[workload]'),
            r"'machines' names 'arm64', .* one of x86_64-4k, arm64-4k",
        ),
        (("read_gib = 2", "read_gib = -2"), r"'published\[0\].read_gib' is wrong: expected `float` > 0.0"),
        (("read_gib = 2\nseconds = 3.5", ""), r"'published\[0\].read_gib' is missing, and every other metric as well"),
        (("read_gib = 2", "speed = 2"), r"'published\[0\].speed' is not a key"),
        (
            ("stride = [3, 5]", "stride = [3.5]"),
            r"'cells\[1\].stride\[0\]' is wrong: expected `int \| str`, got `float`",
        ),
        (("cells = [{ pat", "cells = [3, { pat"), r"'cells\[0\]' is wrong: expected `table`, got `int`"),
        (
            ("[parameters]", "[agreement]\nspeed = 0.1\n[parameters]"),
            r"'agreement' names 'speed', which is not one of read_bytes, ",
        ),
        (
            ("[parameters]", "[agreement]\nread_bytes = -1\n[parameters]"),
            r"'agreement.read_bytes' is wrong: expected `float` >= 0",
        ),
        (('scales = ["quick"]', 'scales = ["huge"]'), r"'expect\[0\].scales' names 'huge'"),
        (("at_most = 1.5", ""), r"'expect\[0\].at_least' is missing, and 'at_most' as well"),
        (
            ('relative_to = "published figure"', 'relative_to = "lore"'),
            r"'expect\[0\].relative_to' has to be 'published figure', 'floor' or",
        ),
        (
            ('variants = ["off"]\nmetrics', 'variants = ["published"]\nmetrics'),
            r"no read_bytes was for published and random",
        ),
        (
            ('metrics = ["read_bytes"]', 'metrics = ["major_faults"]'),
            r"no major_faults was for off and random on x86_64",
        ),
        (
            ("read_gib = 2", 'machines = ["arm64-4k"]\nread_gib = 2'),
            r"no read_bytes was for off and random on x86_64-4k",
        ),
        (
            (
                'cell = { pattern = "random" }\nvariants = ["off"]\nmetrics',
                'cell.x = 1\nvariants = ["off"]\nmetrics',
            ),
            r"'expect\[0\].cell' matches no cell of the scale 'quick'",
        ),
        (
            ('cell = { pattern = "random" }\nvariants = ["off"]\nread', 'cell.x = 1\nvariants = ["off"]\nread'),
            r"'published\[0\].cell' is not one cell of this experiment",
        ),
    ],
)
def test_mistakes_are_named_with_file_and_key(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    assert change[0] in GOOD
    file = write(tmp_path, GOOD.replace(*change, 1))
    with pytest.raises(BadExperiment, match=complaint) as caught:
        find_experiment(file)
    assert str(caught.value).startswith(file)
    assert str(caught.value).endswith(".")


TREES = GOOD.replace('"ext4"\n', '"ext4"\ncontent = "trees"\ntrees = ["100x4096", "2x3"]\n')


def test_a_disk_of_directories(tmp_path: Path) -> None:
    text = TREES.replace('file = "16M"\n', "").replace('file = "8M"\n', "")
    quick = find_experiment(write(tmp_path, text)).scale("quick")
    assert (quick.parameters.trees, quick.parameters.file_bytes) == ("100x4096 2x3", 0)
    assert quick.parameters.recorded()["trees"] == "100x4096 2x3"
    with pytest.raises(BadExperiment, match="trees' takes numbers of files and of their pages"):
        find_experiment(write(tmp_path, text.replace("2x3", "2x0")))


ELSEWHERE = GOOD.replace('relative_to = "published figure"', 'relative_to = "off"\nwhere = { stride = 3 }').replace(
    '[[expect]]\nsays = "it does"\nscales = ["quick"]\ncell = { pattern = "random" }',
    '[[expect]]\nsays = "it does"\nscales = ["quick"]\ncell = { stride = 5 }',
)


def test_an_expectation_relative_to_another_cell(tmp_path: Path) -> None:
    expectation = find_experiment(write(tmp_path, ELSEWHERE)).expectations[0]
    assert (expectation.relative_to, expectation.where) == ("off", {"stride": 3})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("stride = 3 }", "stride = 4 }"), "makes no other cell of the scale 'quick' of stride 5"),
        (("stride = 3 }", "stride = 5 }"), "makes no other cell of the scale 'quick' of stride 5"),
        (('relative_to = "off"', 'relative_to = "floor"'), "is about a variant in 'relative_to'"),
    ],
)
def test_another_cell_that_is_none(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    assert change[0] in ELSEWHERE
    with pytest.raises(BadExperiment, match=rf"'expect\[0\].where' {complaint}"):
        find_experiment(write(tmp_path, ELSEWHERE.replace(*change)))


def test_no_floor_no_multiples_of_it(tmp_path: Path) -> None:
    text = GOOD.replace('floor = "floor_bytes"\n', "").replace(
        'relative_to = "published figure"', 'relative_to = "floor"'
    )
    with pytest.raises(BadExperiment, match=r"relative_to' is 'floor', but the experiment has none"):
        find_experiment(write(tmp_path, text))


def test_binary_files_are_no_experiments(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(BadExperiment, match="not UTF-8"):
        find_experiment(str(file))


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UnknownExperiment, match=r"'dense-mmap'; known: .*sparse-mmap"):
        find_experiment("dense-mmap")
    with pytest.raises(UnknownExperiment, match=r"no experiment file /nowhere/x\.toml"):
        find_experiment("/nowhere/x.toml")
    with pytest.raises(UsageError, match="no scale 'tiny'; known: full, quick, demo"):
        find_experiment("sparse-mmap").scale("tiny")


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
