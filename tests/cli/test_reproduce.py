# SPDX-License-Identifier: GPL-2.0-only
"""``lab reproduce`` on parts that take no kernel."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.cli import report, reproduce
from foliolab.cli.main import main
from foliolab.errors import ChecksFailed, NoResult, UnknownCell, UnknownVariant, UsageError
from foliolab.reproduce import parts
from foliolab.reproduce.plan import load_plan
from foliolab.reproduce.released import read_released, write_released
from tests.cli.command import lab, sentence
from tests.small import small_experiment


def test_a_part_is_planned_measured_and_complete(tmp_path: Path) -> None:
    here = {"FOLIOLAB_RESULTS": str(tmp_path)}
    planned = lab("reproduce", "--only", "patterns-model", "--plan", "--json", **here)
    (before,) = json.loads(planned.stdout)["experiments"]
    assert (before["name"], before["n"], before["complete"]) == ("patterns-model", 1, False)
    assert not (tmp_path / "samples.jsonl").exists()
    done = lab("reproduce", "--only", "patterns-model", "--json", **here)
    assert done.returncode == 0
    (after,) = json.loads(done.stdout)["experiments"]
    assert after["complete"] is True
    assert after["measured"] == after["steps"] == 36
    again = lab("reproduce", "--only", "patterns-model", **here)
    assert "36 of 36 measurements are in the store already" in again.stderr
    assert "1 of 1 parts are complete" in again.stdout


def test_a_part_that_is_not_there_is_named() -> None:
    done = lab("reproduce", "--only", "nothing", "--plan")
    assert done.returncode == UsageError.status
    assert "no part 'nothing'" in sentence(done)


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one document of one block, and a plan of one part."""
    (tmp_path / "doc.md").write_text(
        "<!-- foliolab: report access-patterns --released --backend model --table -->\n"
        "| typed |\n<!-- foliolab: end -->\n| a | b |\n| --- | --- |\n| x | 7 |\n"
    )
    (tmp_path / "figures.toml").write_text("")
    part = '[[part]]\nname = "p"\nexperiment = "access-patterns"\nvariants = ["off", "adaptive"]\nbackend = "model"\n'
    (tmp_path / "plan.toml").write_text(part + 'shown = ["doc.md"]\n')
    released = tmp_path / "samples.xz"
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    for module, name, value in (
        (parts, "REPOSITORY", tmp_path),
        (parts, "RELEASE", tmp_path),
        (reproduce, "load_plan", lambda: load_plan(tmp_path / "plan.toml")),
        (parts, "read_released", lambda: read_released(released)),
        (reproduce, "read_released", lambda: read_released(released)),
        (parts, "write_released", lambda samples: write_released(samples, released)),
        (report, "read_released", lambda: read_released(released)),
    ):
        monkeypatch.setattr(module, name, value)
    return tmp_path


def test_documents_are_filled_and_then_hold(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    assert main(["reproduce", "--write"]) == 0
    assert "| random, count 700 | off |" in (copied / "doc.md").read_text()
    capsys.readouterr()
    assert main(["reproduce", "--check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"differing": [], "older": [], "waiting": [], "typed": {"doc.md": 1}}
    text = (copied / "doc.md").read_text()
    (copied / "doc.md").write_text(text.replace("| random, count 700 | off | 1", "| random, count 700 | off | 2"))
    assert main(["reproduce", "--check"]) == ChecksFailed.status
    assert "doc.md: report access-patterns" in capsys.readouterr().err


def test_the_next_part_is_measured_where_one_fails(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = copied / "plan.toml"
    broken = plan.read_text().replace('"p"', '"broken"').replace("access-patterns", "many-files")
    plan.write_text(broken + plan.read_text())
    assert main(["reproduce", "--json"]) == UsageError.status
    found = capsys.readouterr()
    assert [part["complete"] for part in json.loads(found.out)["experiments"]] == [False, True]
    assert "broken: The model knows" in found.err


def test_a_part_is_complete_when_all_shards_are(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for shard, complete in (("1/2", False), ("2/2", True)):
        assert main(["reproduce", "--json", "--shard", shard]) == 0
        (part,) = json.loads(capsys.readouterr().out)["experiments"]
        assert part["complete"] is complete
        assert part["measured"] > 0


def test_what_was_measured_with_other_code_is_told(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    assert main(["reproduce", "--write"]) == 0
    samples = [
        replace(each, kernel=replace(each.kernel, hash="older")) for each in read_released(copied / "samples.xz")
    ]
    write_released(samples, copied / "samples.xz")
    assert main(["reproduce", "--check"]) == ChecksFailed.status
    assert "other code than stands here: p." in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--variant", "--backend", "--machine"])
def test_what_no_released_sample_has_is_named(option: str) -> None:
    done = lab("report", "fault-cost", "--released", option, "nothing")
    assert done.returncode == NoResult.status
    assert "'nothing'; there are: " in sentence(done)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--table --column kernel=nothing", "'nothing' is neither a variant nor a kernel"),
        ("--table --column a=off --column b=of", "'of' is neither a variant nor a kernel"),
        ("--table --column a=off --column b=nothing_on_patched", "no variant 'nothing'"),
        ("--table --column b=text_on_debian:6.1", "no sample has the variant 'text on debian:6.1'"),
        ("--table --column off", "'off' is no head=variant with a head of its own"),
        ("--table --column a=off --column a=adaptive", "'a=adaptive' is no head=variant with a head of its own"),
        ("--column a=off", "--column is about --table"),
        ("--table --column a=off --metric nothing", "no metric 'nothing'"),
        ("--table --metric major_faults", "--table with --column"),
        ("--table --cell stride=7", "no cell of this experiment matches 'stride=7'"),
    ],
)
def test_columns_that_cannot_be_are_named(words: str, complaint: str) -> None:
    done = lab("report", "fault-cost", "--released", *(word.replace("_", " ") for word in words.split()))
    assert done.returncode in (NoResult.status, UsageError.status, UnknownCell.status, UnknownVariant.status)
    assert complaint in sentence(done).lower()


def test_a_column_may_be_yet_to_be_measured() -> None:
    """Of the samples in release/, in which no kernel is of a version that is yet to come."""
    columns = ("--column", "6.12=off", "--column", "later=adaptive on debian:99.9+ours")
    done = lab("report", "fault-cost", "--released", "--table", *columns)
    assert done.returncode == 0, done.stderr
    head, _, *rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert head.endswith("| 6.12 | later |")
    assert rows
    assert all(re.search(r"\| [\d,.]+ \| not measured \|$", row) for row in rows)


def test_a_table_of_nothing_is_an_error(tmp_path: Path) -> None:
    """Else a document would have it, and a check find it there."""
    mine = small_experiment(tmp_path)
    mine.write_text('compared = ["read_bytes"]\n' + mine.read_text())
    for argv in (["report", str(mine)], ["compare", str(mine), "--baseline", "unpatched"]):
        done = lab(*argv, "--table", "--released")
        assert done.returncode == NoResult.status
        assert not done.stdout
        assert "othing" in sentence(done)


def test_what_was_not_released_stays_as_it_was_typed(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = copied / "doc.md"
    table = "| a | b |\n| --- | --- |\n| x | 3 |\n"
    before = f"<!-- foliolab: report strangers --released --table -->\n{table}<!-- foliolab: end -->\n"
    document.write_text(before)
    assert main(["reproduce", "--write"]) == 0
    assert document.read_text() == before
    capsys.readouterr()
    assert main(["reproduce", "--check", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["typed"] == {"doc.md": 1}
    assert said["waiting"] == ["p", "doc.md: report strangers --released --table"]
    assert main(["reproduce", "--check"]) == 0
    assert "Not measured yet:\n  p\n  doc.md: report strangers" in capsys.readouterr().out


def test_a_part_that_was_measured_in_half_is_not_measured_yet(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    assert main(["reproduce", "--write"]) == 0
    write_released(read_released(copied / "samples.xz")[1:], copied / "samples.xz")
    capsys.readouterr()
    main(["reproduce", "--check", "--json"])
    assert json.loads(capsys.readouterr().out)["waiting"] == ["p"]


def test_a_figure_that_no_row_can_have_fails_the_check(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copied / "figures.toml").write_text(
        '[a]\ncommand = "report access-patterns --released --backend model --json"\n'
        'figures.reads = { value = "read_bytes", where = { pattern = "rondom" } }\n'
    )
    (copied / "doc.md").write_text("It reads 5<!--=reads-->.\n")
    assert main(["reproduce"]) == 0
    assert main(["reproduce", "--write"]) == ChecksFailed.status
    capsys.readouterr()
    assert main(["reproduce", "--check"]) == ChecksFailed.status
    assert "can have read_bytes where {'pattern': 'rondom'}" in capsys.readouterr().err


def test_an_output_is_of_the_code_before_its_command(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever edits meanwhile has an output of what was there before."""
    code = ["before"]

    def command(_: object) -> str:
        code.append("after")
        return "{}"

    monkeypatch.setattr(parts, "code_behind", lambda part: code[-1])
    (copied / "plan.toml").write_text(
        '[[part]]\nname = "q"\ncommand = ["simulate", "--json"]\nshown = ["doc.md"]\nhours = 1\n'
    )
    monkeypatch.setattr(reproduce, "run_lab", command)
    assert main(["reproduce"]) == 0
    assert json.loads((copied / "results/reproduced/q.json").read_text())["code"] == "before"


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("<!-- foliolab: report access-patterns --table -->\n<!-- foliolab: end -->\n", "may measure"),
        ("<!-- foliolab: report fault-cost --released --scale mile -->\n<!-- foliolab: end -->\n", "'mile'"),
        ("5<!--=none-->\n", "There is no figure 'none'"),
    ],
)
def test_a_document_whose_figures_cannot_be_made_stays_as_it_was(
    block: str, words: str, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce"]) == 0
    document = copied / "doc.md"
    before = document.read_text() + block
    document.write_text(before)
    assert main(["reproduce", "--write"]) == ChecksFailed.status
    assert "doc.md is as it was: " in (said := capsys.readouterr().err)
    assert words in said
    assert document.read_text() == before
    assert main(["reproduce", "--check"]) == ChecksFailed.status
    assert words in capsys.readouterr().err


def test_what_a_command_printed_is_shipped_and_shown(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = "simulate --pattern zipf --device nvme --json"
    command = json.dumps(argv.split())
    (copied / "plan.toml").write_text(f'[[part]]\nname = "q"\ncommand = {command}\nshown = ["doc.md"]\nhours = 1\n')
    (copied / "figures.toml").write_text(
        f'[zipf]\ncommand = "{argv}"\n[zipf.figures]\ncells = {{ value = "regret", take = "rows" }}\n'
    )
    (copied / "doc.md").write_text("Of 1<!--=cells--> cells.\n")
    assert main(["reproduce", "--write"]) == 0
    assert (copied / "doc.md").read_text() == "Of 1<!--=cells--> cells.\n"
    assert main(["reproduce"]) == 0
    assert main(["reproduce", "--write"]) == 0
    assert (copied / "doc.md").read_text() == f"Of {5 * 2 * 23}<!--=cells--> cells.\n"
    kept = json.loads((copied / "q.json").read_text())
    assert kept["command"] == argv.split()
    capsys.readouterr()
    assert main(["reproduce", "--check"]) == 0
    (copied / "q.json").write_text(json.dumps({**kept, "code": "older"}))
    assert main(["reproduce", "--check"]) == ChecksFailed.status
    assert "other code than stands here: q." in capsys.readouterr().err
    assert main(["reproduce", "--json"]) == 0
    assert main(["reproduce", "--write"]) == 0
    assert main(["reproduce", "--check"]) == 0
