# SPDX-License-Identifier: GPL-2.0-only
"""Build, compile, package, release, import and clean kernels."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from foliolab.cli import options
from foliolab.errors import DirtyTree, UsageError
from foliolab.files import FIRST_STEPS, KERNEL, REPOSITORY, sweep
from foliolab.kernel.build import KernelRequest, build, clean
from foliolab.kernel.build_deb import build_packages
from foliolab.kernel.git_source import Repository
from foliolab.kernel.imported import take_over
from foliolab.kernel.matrix import compiled, ported_kernels, read_targets
from foliolab.kernel.name import HELP, PATCHED, parse_name
from foliolab.kernel.release import release
from foliolab.progress import say
from foliolab.report.columns import Column
from foliolab.report.terminal import print_table, terminal
from foliolab.vm.scratch import scratch_home


def add_options(parser: argparse.ArgumentParser) -> None:
    verbs = options.add_verbs(parser)
    verb = options.add_command(verbs, "build", _build.__doc__, _build)
    _add_kernel(verb)
    verb.add_argument("--newest", action="store_true", help="ask apt whether Debian has a newer one of that version")
    options.add_profile(verb)
    options.add_extras(verb)
    options.add_machine(verb)

    verb = options.add_command(verbs, "matrix", _matrix.__doc__, _matrix)
    names = ", ".join(target.name for target in read_targets())
    verb.add_argument("target", nargs="*", help=f"only these (default: all): {names}")
    options.add_kernels(verb, f"with the series on this one (default: {' and '.join(ported_kernels())})")
    options.add_json(verb, '{"outcomes": [...]}')
    verb.set_defaults(interrupted="Interrupted; the same command goes on where it was.")

    verb = options.add_command(verbs, "deb", _deb.__doc__, _deb)
    verb.add_argument("directory", type=Path, help="where to put them; made if it is not there")
    _add_kernel(verb)
    text = "configuration: that of a release of Debian, such as debian:13, or a file (default: Debian's for this"
    text += " version of Linux)"
    verb.add_argument("--config", metavar="debian:VERSION|FILE", default="", help=text)
    text = "leave out all modules but those in this list, which lsmod has printed on the machine"
    verb.add_argument("--modules", type=Path, metavar="FILE", help=text)
    verb.set_defaults(interrupted="Interrupted; the same command goes on compiling where it was.")

    options.add_command(verbs, "release", _release.__doc__, _release)

    verb = options.add_command(verbs, "import", _import.__doc__, _import)
    verb.add_argument("branch", help="a git tree, with @REF if it is not HEAD")
    verb.add_argument("--first-steps", action="store_true", help="it is of the first steps for mainline")

    options.add_command(verbs, "clean", _clean.__doc__, _clean)


def _add_kernel(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--kernel", metavar="NAME", default=PATCHED, help=f"which (default: {PATCHED}). {HELP}")


def _build(arguments: argparse.Namespace) -> int:
    """Build a kernel, or find it in the cache, and print where it is."""
    arch, page_size = options.machine(arguments)
    request = KernelRequest(
        arch=arch,
        page_size=page_size,
        kernel=arguments.kernel,
        profile=arguments.profile,
        extras=tuple(arguments.extras),
        newest=arguments.newest,
    )
    print(build(request).image)
    return 0


def _matrix(arguments: argparse.Namespace) -> int:
    """Compile what our series changes for configurations that the lab does not boot. They are other architectures, and
    kernels without what ours may take for granted. Only the objects of changed files are made, with W=1. The exit
    status is 1 if a compiler complains.

    example: ./lab kernel matrix riscv64 x86_64-no-thp
    """
    targets = read_targets(arguments.target)
    kernels = dict.fromkeys(arguments.kernels or ported_kernels())
    outcomes = [outcome for kernel in kernels for outcome in compiled(kernel, targets)]
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
    packages = build_packages(arguments.kernel, arguments.directory, base=arguments.config, modules=arguments.modules)
    for package in packages:
        print(f"{package}  {package.stat().st_size / (1 << 20):.1f} MiB")
    return 0


def _release(arguments: argparse.Namespace) -> int:
    """Make the mailboxes in release/ anew, from which git takes the series and the first steps for mainline."""
    options.require_checkout("This writes patches")
    _print_written(release())
    return 0


def _import(arguments: argparse.Namespace) -> int:
    """Bring a branch of ours, rebased or edited, back into kernel/patches and kernel/files."""
    options.require_checkout("This writes patches")
    name = parse_name(arguments.branch)
    if name.debian or name.image or name.series:
        raise UsageError(f"{arguments.branch} is no git tree.")
    repository = Repository.at(name.path)
    if repository.has_changes():
        if not name.ref:
            raise DirtyTree(
                f"{name.path} has changes that are not committed, and only commits come back; commit them, or "
                f"write {name.path}@HEAD to leave them out."
            )
        say(f"What is not committed in {name.path} is left out.")
    kernel = FIRST_STEPS if arguments.first_steps else KERNEL
    _print_written(take_over(repository, repository.commit(name.ref or "HEAD"), kernel))
    return 0


def _print_written(files: Sequence[Path]) -> None:
    for file in files:
        print(file.relative_to(REPOSITORY))
    if not files:
        print("Nothing differs.")


def _clean(arguments: argparse.Namespace) -> int:
    """Empty the cache: kernels, objects, sources, programs, packages, disks."""
    clean()
    sweep(scratch_home())
    return 0
