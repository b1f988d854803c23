# SPDX-License-Identifier: GPL-2.0-only
"""The mailboxes in release/ are what the patches say, and git takes them on pristine kernels."""

import re
import shutil
import subprocess
from email import message_from_string, policy
from pathlib import Path

import pytest

from foliolab.files import FIRST_STEPS, RELEASE, REPOSITORY
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.name import OURS
from foliolab.kernel.release import Mailbox, mailboxes
from foliolab.kernel.series import Mail, applied, bases, diffs, read_mail
from tests.git import git

MAILBOXES = {mailbox.name: mailbox for mailbox in mailboxes()}
STALE = "./lab kernel release makes it anew"


@pytest.fixture(params=MAILBOXES)
def released(request: pytest.FixtureRequest) -> Mailbox:
    return MAILBOXES[request.param]


def text_of(released: Mailbox) -> str:
    return (RELEASE / released.name).read_text()


def mails(released: Mailbox) -> list[Mail]:
    """What its mails say, with what git adds left out."""
    found = []
    for text in re.split(r"^From 0{40} .*\n", text_of(released), flags=re.MULTILINE)[1:]:
        mail = message_from_string(text, policy=policy.default)
        message, _, rest = mail.get_content().partition("---\n")
        subject = re.sub(r"^\[PATCH[^]]*\] ", "", mail["Subject"])
        found.append(Mail(str(mail["From"]), str(mail["Date"]), subject, message, rest[rest.index("diff --git") :]))
    return found


def test_every_mailbox_of_the_directory_is_made() -> None:
    assert sorted(file.name for file in RELEASE.glob("**/*.mbox")) == sorted(MAILBOXES)


def test_mails_say_what_the_patches_say(released: Mailbox) -> None:
    words = [(mail.author, mail.date, mail.subject, mail.message) for mail in mails(released)]
    ours = [read_mail(feature.patch) for feature in released.features]
    assert words == [(mail.author, mail.date, mail.subject, mail.message) for mail in ours], STALE


def hunks(diff: str) -> list[str]:
    """What is removed and added; where, and beside what, depends on the kernel."""
    return [line for line in diff.splitlines() if re.match(r"[-+](?![-+]{2} [ab]?/)", line)]


def test_mails_change_files_of_the_kernel_as_the_patches_do(released: Mailbox) -> None:
    for feature, mail in zip(released.features, mails(released), strict=True):
        parts = re.split(r"^diff --git a/(\S+) b/\S+\n", mail.diff, flags=re.MULTILINE)[1:]
        theirs = dict(zip(parts[::2], parts[1::2], strict=True))
        ours = diffs(feature.patch)
        assert set(theirs) == {*feature.files, *ours}, STALE
        for file in set(ours) - set(feature.files):
            assert hunks(theirs[file]) == hunks(ours[file]), f"{file}: {STALE}"


def patched(place: Path, diff: str) -> None:
    subprocess.run(["patch", "--strip=1", "--quiet"], cwd=place, input=diff, text=True, check=True)


def test_mails_bring_our_files(released: Mailbox, tmp_path: Path) -> None:
    wanted, found = tmp_path / "wanted", tmp_path / "found"
    files = [file for feature in released.features for file in feature.files]
    for file in files:
        (wanted / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(released.kernel / "files" / file, wanted / file)
    for feature in released.features:  # what fits them to another kernel
        if fits := "".join(diff for file, diff in diffs(feature.patch).items() if file in feature.files):
            patched(wanted, fits)
    found.mkdir()
    for mail in mails(released) if files else []:
        parts = re.split(r"^(?=diff --git a/)", mail.diff, flags=re.MULTILINE)
        if ours := "".join(part for part in parts if part.startswith(tuple(f"diff --git a/{file} " for file in files))):
            patched(found, ours)
    for file in files:
        assert (found / file).read_bytes() == (wanted / file).read_bytes(), f"{file}: {STALE}"


def placeless(text: str) -> list[str]:
    """Without what differs between stable versions of one kernel, and where hunks are."""
    return re.sub(r"^(@@ .*|index .*|base: .*)\n", "", text, flags=re.MULTILINE).splitlines()


@pytest.mark.boot
def test_git_takes_the_mailbox_as_the_lab_does(released: Mailbox, tmp_path: Path) -> None:
    source, mailbox = from_debian(released.version), RELEASE / released.name
    changed = applied(source, [str(mailbox)])
    for file in changed:
        if (source.tree / file).exists():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source.tree / file, tmp_path / file)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--force", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Pristine")
    somebody = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")
    command = ["git", *somebody, "am", "--quiet", str(mailbox)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)  # nor is a mode another one
    subjects = git(tmp_path, "log", "--reverse", "--format=%s").split("\n")[1:-1]
    assert subjects == [read_mail(feature.patch).subject for feature in released.features]
    assert changed == {file: (tmp_path / file).read_bytes() for file in changed}
    if released.kernel != FIRST_STEPS and not released.left_out:
        assert changed == applied(source, [OURS])


@pytest.mark.boot
def test_the_mailbox_is_made_of_the_patches_whatever_git_is_told(
    released: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = from_debian(released.version)
    made = released.made(source)
    assert placeless(made) == placeless(text_of(released)), STALE
    (tmp_path / ".gitconfig").write_text("[format]\n\tsignature = me\n\tsubjectPrefix = RFC\n[diff]\n\tcontext = 9\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert released.made(source) == made


@pytest.mark.parametrize("version", bases(FIRST_STEPS))
def test_constants_are_those_of_the_model(version: str) -> None:
    policy = (REPOSITORY / "model/policies/first_steps.c").read_text()
    series = text_of(MAILBOXES[f"first-steps-{version}.mbox"])
    for ours, theirs, more in (
        ("HALVES", "MMAP_MISS_HALVES", 0), ("NEAR_PAGES", "MMAP_NEAR_PAGES", 0), ("HIT", "MMAP_HIT", 0),
        ("STREAM", "MMAP_HIT_STREAM", 0), ("NEAR", "MMAP_HIT_NEAR", 0), ("READ_ON", "MMAP_READ_ON", 0),
        ("REFAULT", "MMAP_MISS_REFAULT", 1),
    ):  # fmt: skip
        here, there = (
            re.findall(rf"#define {name}\s+(\d+)", text) for name, text in ((ours, policy), (theirs, series))
        )
        assert here and there, ours
        assert {int(each) + more for each in here} == {int(each) for each in there}, ours
