# SPDX-License-Identifier: GPL-2.0-only
"""init as it runs on a machine, in namespaces of this one: it sees files of the test's, and no device."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.metal.answers import Answers
from foliolab.process import dying_with_parent
from foliolab.vm.image import guest_programs
from foliolab.vm.outcome import JobResult

_IN_NAMESPACE = """\
mount -t tmpfs none "$1"
mkdir -p "$1/dev/shm"
cp -r "$2/." "$1"
foliolab_job=/job timeout 60 unshare --pid --fork --kill-child chroot "$1" /bin/init
cp "$1/job/answers" "$1/job/console" "$2/job"
"""


@dataclass(frozen=True)
class Alone:
    place: Path

    def run(
        self, jobs: Sequence[Sequence[str]], files: Mapping[str, str], steps: Sequence[int] | None = None
    ) -> list[JobResult]:
        """What comes of the jobs, each of which is a step of its own unless ``steps`` says otherwise."""
        root = self.place / "root"
        for name, text in files.items():
            (root / name.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (root / name.lstrip("/")).write_text(text)
        for directory in ("job", "bin"):
            (root / directory).mkdir(exist_ok=True)
        programs = guest_programs(NATIVE)
        (root / "bin/init").write_bytes(programs["init"].read_bytes())
        (root / "bin/init").chmod(0o755)
        numbered = list(enumerate(zip(steps or range(1, len(jobs) + 1), jobs, strict=True), start=1))
        lines = [json.dumps({"id": number, "step": step, "argv": list(argv)}) for number, (step, argv) in numbered]
        (root / "job/requests").write_text("".join(f"{line}\n" for line in lines))
        (self.place / "mounted").mkdir(exist_ok=True)
        argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _IN_NAMESPACE, "sh"]
        done = subprocess.run(
            dying_with_parent([*argv, str(self.place / "mounted"), str(root)]), capture_output=True, check=False
        )
        if b"unshare failed" in done.stderr:
            pytest.skip("no namespaces can be made here")
        answers = Answers.read((root / "job/answers").read_text())
        commands = {number: tuple(argv) for number, (_, argv) in numbered}
        return [replace(result, argv=commands[number]) for number, result in answers.results.items()]
