# SPDX-License-Identifier: GPL-2.0-only
"""Build, configure, compile, package, export, release, import, list and clean kernels."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foliolab.arch import size_name
from foliolab.campaign.store import read_samples, store_file
from foliolab.cli.options import (
    add_command,
    add_extras,
    add_json,
    add_kernels,
    add_machine,
    add_profile,
    add_verbs,
    machine,
)
from foliolab.errors import DirtyTree, UsageError
from foliolab.experiment.load import experiment_names, find_experiment
from foliolab.files import FIRST_STEPS, KERNEL, REPOSITORY
from foliolab.kernel.build import KernelRequest, build, clean, configure
from foliolab.kernel.built import BuiltKernel, built_kernels
from foliolab.kernel.deb import build_packages
from foliolab.kernel.export import BRANCH, checked_author, export
from foliolab.kernel.git import Repository
from foliolab.kernel.matrix import compiled, ported_kernels, read_targets
from foliolab.kernel.name import HELP, OURS, PATCHED, UNPATCHED, parse_name
from foliolab.kernel.rebased import applied_mail, take_over
from foliolab.kernel.release import release
from foliolab.kernel.source import commit_of, copied
from foliolab.progress import Reporter
from foliolab.report.columns import Column
from foliolab.report.letter import letter
from foliolab.report.terminal import print_table, terminal
from foliolab.reproduce.released import with_released
from foliolab.vm.scratch import scratch_directory, sweep


def add_options(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    for name, handle in (("build", _build), ("config", _config)):
        verb = add_command(verbs, name, handle.__doc__, handle)
        _add_source(verb, PATCHED, "which")
        add_profile(verb)
        add_extras(verb)
        add_machine(verb)
        if name == "build":
            add_json(verb)

    verb = add_command(verbs, "matrix", _matrix.__doc__, _matrix)
    names = ", ".join(target.name for target in read_targets())
    verb.add_argument("target", nargs="*", help=f"only these (default: all): {names}")
    add_kernels(verb, f"with the series on this one (default: {' and '.join(ported_kernels())})")
    add_json(verb, '{"outcomes": [...]}')
    verb.set_defaults(interrupted="Interrupted; the same command goes on where it was.")

    verb = add_command(verbs, "deb", _deb.__doc__, _deb)
    verb.add_argument("directory", type=Path, help="where to put them; made if it is not there")
    _add_source(verb, PATCHED, "which")
    verb.add_argument(
        "--config",
        metavar="debian:VERSION|FILE",
        default="",
        help="configuration: that of a release of Debian, such as debian:13, or a file (default: Debian's for this "
        "version of Linux)",
    )
    verb.add_argument(
        "--modules",
        type=Path,
        metavar="FILE",
        help="leave out all modules but those in this list, which lsmod has printed on the machine",
    )
    verb.set_defaults(interrupted="Interrupted; the same command goes on compiling where it was.")

    verb = add_command(verbs, "export", _export.__doc__, _export)
    verb.add_argument("directory", type=Path, help="where to; must not exist yet")
    _add_source(verb, UNPATCHED, "the kernel that the series is put on")
    verb.add_argument(
        "--author",
        metavar='"NAME <ADDRESS>"',
        help="who sends it: all commits are theirs and signed off by them (default: nobody signs anything off)",
    )

    add_command(verbs, "release", _release.__doc__, _release)

    verb = add_command(verbs, "import", _import.__doc__, _import)
    verb.add_argument("branch", metavar="BRANCH|MBOX", help="a git tree, with @REF if it is not HEAD, or an mbox")
    _add_source(verb, UNPATCHED, "the kernel that the mbox is for")
    verb.add_argument("--first-steps", action="store_true", help="it is of the first steps for mainline")

    add_json(add_command(verbs, "list", _list.__doc__, _list))
    add_command(verbs, "clean", _clean.__doc__, _clean)


def _add_source(verb: argparse.ArgumentParser, default: str, text: str) -> None:
    verb.add_argument("--kernel", metavar="NAME", default=default, help=f"{text} (default: {default}). {HELP}")
    verb.add_argument("--newest", action="store_true", help="ask apt whether Debian has a newer one of that version")


def _request(arguments: argparse.Namespace) -> KernelRequest:
    arch, page_size = machine(arguments)
    return KernelRequest(
        arch=arch,
        page_size=page_size,
        kernel=arguments.kernel,
        profile=arguments.profile,
        extras=tuple(arguments.extras),
        newest=arguments.newest,
    )


def _facts(kernel: BuiltKernel) -> dict[str, Any]:
    return asdict(kernel) | {"arch": kernel.arch.name, "image": str(kernel.image)}


def _build(arguments: argparse.Namespace) -> int:
    """Build a kernel, or find it in the cache, and print where it is."""
    kernel = build(_request(arguments), Reporter())
    print(json.dumps(_facts(kernel)) if arguments.json else kernel.image)
    return 0


def _config(arguments: argparse.Namespace) -> int:
    """Print the final .config of a kernel, checked against the fragments."""
    print(configure(_request(arguments), Reporter()), end="")
    return 0


def _matrix(arguments: argparse.Namespace) -> int:
    """Compile what our series changes for configurations that the lab does not boot. They are other architectures, and
    kernels without what ours may take for granted. Only the objects of changed files are made, with W=1. The exit
    status is 1 if a compiler complains.

    example: ./lab kernel matrix riscv64 x86_64-no-thp
    """
    report = Reporter()
    targets = read_targets(arguments.target)
    kernels = dict.fromkeys(arguments.kernels or ported_kernels())
    outcomes = [outcome for kernel in kernels for outcome in compiled(kernel, targets, report)]
    if arguments.json:
        print(json.dumps({"outcomes": [asdict(outcome) for outcome in outcomes]}, indent=1))
    else:
        columns = [
            Column(("", "target"), tuple(outcome.target for outcome in outcomes), 0, left=True),
            Column(("", "kernel"), tuple(outcome.kernel for outcome in outcomes), 0, left=True),
            Column(("", "Linux"), tuple(outcome.version for outcome in outcomes), 1),
            Column(("", "objects"), tuple(str(len(outcome.objects)) for outcome in outcomes), 0),
            Column(("", "complaints"), tuple(str(len(outcome.complaints)) for outcome in outcomes), 1),
            Column(("", "the first"), tuple(next(iter(each.complaints), "ok") for each in outcomes), 0, left=True),
        ]
        print_table(terminal(), columns, ["red" if outcome.complaints else "" for outcome in outcomes])
    return 1 if any(outcome.complaints for outcome in outcomes) else 0


def _deb(arguments: argparse.Namespace) -> int:
    """Make Debian packages of a kernel for a machine of your own, with a distribution's configuration."""
    packages = build_packages(
        arguments.kernel,
        arguments.directory,
        Reporter(),
        base=arguments.config,
        modules=arguments.modules,
        newest=arguments.newest,
    )
    for package in packages:
        print(f"{package}  {package.stat().st_size / (1 << 20):.1f} MiB")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    """Write the series as a git branch and as an mbox that 'git am' and b4 take, with a cover letter."""
    report = Reporter()
    name = parse_name(arguments.kernel)
    if name.series:
        raise UsageError(f"Our series is exported on a kernel that has none: not on {name.text}.")
    author = checked_author(arguments.author) if arguments.author is not None else ""
    ours = parse_name(f"debian:{name.debian}+{OURS}" if name.debian else f"{name.text}+{OURS}").text
    samples = with_released(read_samples(store_file()))
    words = letter(samples, {name: find_experiment(name) for name in experiment_names()}, ours)
    with scratch_directory() as home:
        source = copied(name, home, report, newest=arguments.newest)
        base = commit_of(name, source)
        exported = export(source, arguments.directory, report, words=words, author=author, base=base)
    print(f"branch {BRANCH} in {exported.repository}")
    print(f"mbox   {exported.mbox}")
    print(f"letter {exported.letter}")
    return 0


def _release(arguments: argparse.Namespace) -> int:
    """Make the mailboxes in release/ anew, from which git takes the series and the first steps for mainline."""
    _print_written(release(Reporter()))
    return 0


def _import(arguments: argparse.Namespace) -> int:
    """Bring a rebased or edited branch of the series back into kernel/patches and kernel/files."""
    report = Reporter()
    kernel = FIRST_STEPS if arguments.first_steps else KERNEL
    if Path(arguments.branch).is_file():
        with scratch_directory() as home:
            source = copied(parse_name(arguments.kernel), home, report, newest=arguments.newest)
            with applied_mail(Path(arguments.branch), source) as place:
                written = take_over(place, "HEAD", kernel)
    else:
        name = parse_name(arguments.branch)
        if name.debian or name.image or name.series:
            raise UsageError(f"{arguments.branch} is neither a git tree nor an mbox.")
        repository = Repository.at(name.path)
        if repository.has_changes():
            if not name.ref:
                raise DirtyTree(
                    f"{name.path} has changes that are not committed, and only commits come back; commit them, or "
                    f"write {name.path}@HEAD to leave them out."
                )
            report.say(f"What is not committed in {name.path} is left out.")
        written = take_over(name.path, repository.commit(name.ref or "HEAD"), kernel)
    _print_written(written)
    return 0


def _print_written(files: Sequence[Path]) -> None:
    for file in files:
        print(file.relative_to(REPOSITORY))
    if not files:
        print("Nothing differs.")


def _list(arguments: argparse.Namespace) -> int:
    """List the kernels in the cache, newest first."""
    kernels = built_kernels()
    if arguments.json:
        print(json.dumps({"kernels": [_facts(kernel) for kernel in kernels]}))
        return 0
    for kernel in kernels:
        columns = (f"{kernel.arch.name:6}", f"{size_name(kernel.page_size):3}", f"{kernel.profile:5}")
        print(kernel.hash, *columns, f"{kernel.name:9}", kernel.release, sep="  ")
    return 0


def _clean(arguments: argparse.Namespace) -> int:
    """Empty the cache: kernels, objects, sources, programs, packages, disks."""
    clean(Reporter())
    sweep()
    return 0
