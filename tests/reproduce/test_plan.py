# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.campaign.measure import planned
from foliolab.cli.main import command_line
from foliolab.errors import BadExperiment, UsageError
from foliolab.files import REPOSITORY
from foliolab.reproduce.parts import progress
from foliolab.reproduce.plan import choose_parts, load_plan
from foliolab.reproduce.released import read_released
from tests.test_documents import anchors


def plan(directory: Path, text: str) -> Path:
    file = directory / "plan.toml"
    file.write_text(text)
    return file


GOOD = '[[part]]\nname = "one"\nexperiment = "mprotect"\nshown = ["README.md"]\nmachine = "arm64-64k"\n'


def test_every_part_can_be_asked_for() -> None:
    for part in load_plan():
        if part.command:
            command_line().parse_args(list(part.command))
        else:
            assert planned(part.request())[0].steps


def test_every_part_is_shown_in_a_section_that_is_there() -> None:
    for part in load_plan():
        assert part.shown
        for place in part.shown:
            name, _, anchor = place.partition("#")
            assert not anchor or anchor in anchors(REPOSITORY / name), place


def test_a_part_is_for_a_machine(tmp_path: Path) -> None:
    (part,) = load_plan(plan(tmp_path, GOOD))
    request = part.request()
    assert (request.arch, request.page_size, request.repetitions, part.quick) == ("arm64", 65536, 1, False)


def test_a_part_is_asked_for_on_its_device(tmp_path: Path) -> None:
    text = GOOD.replace("arm64-64k", "x86_64-4k").replace("mprotect", "sparse-mmap") + 'device = "hdd"\n'
    (part,) = load_plan(plan(tmp_path, text))
    assert planned(part.request())[0].scale.parameters.device == "hdd"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"'part' is missing"),
        ("[[part]", "is not valid TOML"),
        (GOOD + GOOD, r"'part\[1\].name' is 'one', as that of another part"),
        (GOOD + "boots = 3\n", r"'part\[0\].boots' is not a key that is known here"),
        (GOOD + "n = 0\n", r"'part\[0\].n' is wrong: expected `int` >= 1"),
        (GOOD + 'backend = "kvm"\n', r"'part\[0\].backend' has to be one of qemu, model"),
        (GOOD + "hours = 1\n", r"'part\[0\].hours' is what a command has to have"),
        (
            GOOD.replace('experiment = "mprotect"', 'command = ["simulate"]'),
            r"'part\[0\].hours' is what a command has to",
        ),
        (GOOD + 'command = ["simulate"]\n', r"'part\[0\]' has to have either a command or an experiment"),
        (GOOD.replace("arm64-64k", "arm64-8k"), r"'part\[0\].machine' names 'arm64-8k', which is not one of x86_64-4k"),
        (GOOD + 'device = "tape"\n', r"'part\[0\].device' names 'tape', which is not one of nvme, sata"),
    ],
)
def test_mistakes_are_named(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadExperiment, match=words):
        load_plan(plan(tmp_path, text))


def test_parts_are_chosen() -> None:
    parts = load_plan()
    assert [part.name for part in choose_parts(parts, ["fault-cost", "picture"], quick=False)] == [
        "picture",
        "fault-cost",
    ]
    assert choose_parts(parts, [], quick=True) == [part for part in parts if part.quick]
    with pytest.raises(UsageError, match="no part 'nothing'"):
        choose_parts(parts, ["nothing"], quick=False)


def test_an_evening_is_enough_for_the_quick_parts() -> None:
    quick = [part for part in load_plan() if part.quick]
    hours = [each.hours for each in progress(quick, [], read_released())]
    assert 0 < sum(filter(None, hours)) <= 6
