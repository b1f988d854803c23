# SPDX-License-Identifier: GPL-2.0-only
"""Mistakes in experiment files, each named with its key."""

from pathlib import Path

import pytest

from foliolab.errors import BadExperiment, UnknownExperiment, UsageError
from foliolab.experiment.load import find_experiment
from tests.experiment.good import GOOD, write


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
        (("fraction = 0.5", "fraction = inf"), r"'scales.quick.fraction' is wrong: expected `float` <= 1.0"),
        (("factor = 0.5", "factor = nan"), r"'scales.quick.factor' is wrong: expected `float` > 0.0"),
        (("factor = 0.5", "factor = inf"), r"'scales.quick.factor' is wrong: expected `float` <= "),
        (("cpus = 2", "cpus = 2\ncpus = 3"), r"not valid TOML: .*line 13"),
        (("cpus = 2", f"cpus = {'[' * 3000}{']' * 3000}"), r"not valid TOML: its values lie too deep in each other"),
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
        (
            ("[workload]", 'unaffected_by = ["mprotect-runs"]\n[workload]'),
            r"'unaffected_by' names 'mprotect-runs', which is not one of adaptive, .*, mprotect, ",
        ),
        (("[workload]", "[aliases]\nA1 = { stride = 4 }\n[workload]"), r"'aliases.A1' matches no cell"),
        (("[workload]", "[aliases]\nA1 = { stride = [4] }\n[workload]"), r"'aliases.A1.stride' is wrong"),
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
        (
            ("stride = [3, 5]", "stride = [3, 5] }, { pattern = 'stride', stride = 5"),
            r"'cells\[2\]' has 'stride 5', which stands there before",
        ),
        (("stride = [3, 5]", "stride = [3, 3]"), r"'cells\[1\]' has 'stride 3', which stands there before"),
        (
            ('cells = [{ pattern = "random" }]', 'cells = [{ pattern = ["random", "random"] }]'),
            r"'scales.small.cells\[0\]' has 'random'",
        ),
        (('["off", "published"]', '["off", "published", "off"]'), r"'variants' names 'off' twice"),
        (
            ('variants = ["off"]\ncells', 'variants = ["off", "off"]\ncells'),
            r"'scales.small.variants' names 'off' twice",
        ),
        (("at_most = 1.5", "at_least = 0"), r"'expect\[0\].at_least' is 0, which nothing falls below"),
        (("at_most = 1.5", "at_least = 0.5\nat_most = 0.4"), r"'expect\[0\].at_least' is more than 'at_most'"),
        (("at_most = 1.5", "at_most = inf"), r"'expect\[0\].at_most' is wrong: expected `float` <= "),
        (
            ('relative_to = "published figure"', 'relative_to = "off"'),
            r"'expect\[0\].relative_to' is 'off', which is one of the variants themselves",
        ),
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
            ('cell = { pattern = "random" }\nvariants = ["off"]\nmetrics', 'cell.x = 1\nvariants = ["off"]\nmetrics'),
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


def test_no_experiment_of_the_user_s_has_the_name_of_one_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "sparse-mmap.toml"
    file.write_text(GOOD)
    with pytest.raises(BadExperiment, match=r"sparse-mmap\.toml has the name of an experiment of the lab"):
        find_experiment(str(file))


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UnknownExperiment, match=r"'dense-mmap'; known: .*sparse-mmap"):
        find_experiment("dense-mmap")
    with pytest.raises(UnknownExperiment, match=r"no experiment file /nowhere/x\.toml"):
        find_experiment("/nowhere/x.toml")
    with pytest.raises(UsageError, match="no scale 'tiny'; known: full, quick, demo"):
        find_experiment("sparse-mmap").scale("tiny")
