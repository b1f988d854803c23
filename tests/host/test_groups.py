# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from foliohost.groups import Groups, blind_spots, group_of, name_of, parse_paths
from foliohost.processes import PAGE_BYTES
from tests.host.command import ENVIRONMENT

ID = "0123456789ab" + "c" * 52


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/system.slice/postgresql.service", "unit postgresql.service"),
        ("/user.slice/user-1000.slice/session-4.scope", "unit session-4.scope"),
        (f"/system.slice/docker-{ID}.scope", "container 0123456789ab"),
        (f"/docker/{ID}", "container 0123456789ab"),
        (
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12345678_1234_1234_1234_123456789abc.slice"
            f"/cri-containerd-{ID}.scope",
            "pod 12345678-1234-1234-1234-123456789abc, container 0123456789ab",
        ),
        (
            f"/kubepods/besteffort/pod12345678-1234-1234-1234-123456789abc/{ID}",
            "pod 12345678-1234-1234-1234-123456789abc, container 0123456789ab",
        ),
        ("/", ""),
        ("/user.slice", ""),
    ],
)
def test_whose_a_group_is(path: str, name: str) -> None:
    assert name_of(path) == name


def test_names_of_groups_have_any_characters_but_one() -> None:
    odd = "/a\rb\x0bc\x0cd\x1ce\x1df\x1eg\x85h\u2028i:j"
    assert parse_paths(f"4:memory,cpu:{odd}\n0::/\nnonsense\n") == {"memory": odd, "cpu": odd, "": "/"}


def test_our_own_group() -> None:
    groups = Groups([os.getpid()])
    groups.look([os.getpid(), os.getppid(), 1 << 22])
    found = {pid: group.path for group in groups.finish() for pid in group.processes}
    assert found == {pid: group_of(pid) for pid in (os.getpid(), os.getppid())}
    assert group_of(1 << 22) == ""


def test_what_was_reclaimed_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the control groups of Linux 6.18 tell it."""
    monkeypatch.setattr("foliohost.groups._ROOTS", (tmp_path,))
    ours = tmp_path / group_of(os.getpid()).lstrip("/")
    ours.mkdir(parents=True, exist_ok=True)
    for before, after, taken in (("pgsteal_proactive 5\n", "pgsteal_proactive 25\n", 20 * PAGE_BYTES), ("", "", None)):
        (ours / "memory.stat").write_text(f"anon 1\n{before}pgsteal_direct 9\n")
        groups = Groups([os.getpid()])
        (ours / "memory.stat").write_text(f"anon 1\n{after}pgsteal_direct 9\n")
        assert [group.proactive_bytes for group in groups.finish()] == [taken]


def test_what_a_container_hides() -> None:
    """In a namespace of PIDs of its own, and nothing of that outside."""
    words = "import json; from foliohost.groups import blind_spots; print(json.dumps(blind_spots()))"
    argv = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", words]
    done = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("a namespace of PIDs takes root")
    assert any("This is a container" in sentence for sentence in json.loads(done.stdout))
    assert json.loads(done.stdout) != blind_spots()
