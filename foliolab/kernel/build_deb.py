# SPDX-License-Identifier: GPL-2.0-only
"""Debian packages of our kernel for people's own machines, with a distribution's configuration."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from foliolab.arch import NATIVE
from foliolab.errors import BuildError, UsageError
from foliolab.files import KERNEL, cache_directory, emptied, full_disk_named, write_atomic
from foliolab.kernel import config
from foliolab.kernel.build import KernelRequest, build, has_our_code, package_lock
from foliolab.kernel.held import held
from foliolab.kernel.make import run_make, unfinished_swept
from foliolab.kernel.name import BASE_VERSION, PATCHED, KernelName, expanded, parse_name, stem
from foliolab.kernel.series import applied
from foliolab.kernel.source import Source
from foliolab.kernel.tree import working_tree
from foliolab.process import require, run, tool

_DEBIAN = "debian:"

_IMAGE = "linux-image-"
"""How the name of a package with a kernel begins."""

_LAST_WORDS = """\
# depmod writes files that the package does not have, of which newer ones know more.
case $1 in
remove | purge)
	rm -f "${{DPKG_ROOT:-}}/lib/modules/{release}"/modules.*
	rmdir "${{DPKG_ROOT:-}}/lib/modules/{release}" 2>/dev/null || true
	;;
esac
"""
"""What the package of a kernel does last when it is removed."""


def build_packages(kernel: str, directory: Path, *, base: str, modules: Path | None) -> tuple[Path, ...]:
    """Put packages of a kernel, and of headers for modules, into ``directory``, which is made if it is not there.

    ``base`` is the configuration: a file, or "debian:" with a release or a version of Linux; "" is Debian's for the
    kernel's own version. ``modules`` is a file that lists modules, as lsmod does: all others are left out.

    A build that was interrupted, or killed, goes on where it was. It has its own lock and source tree, so that other
    builds need not wait for it. Raises UsageError, MissingTool and what ``foliolab.kernel.build`` raises.
    """
    name = parse_name(kernel)
    if name.image:
        raise UsageError(
            f"{name.text} is a package of Debian's already; name a source, such as {_DEBIAN}{BASE_VERSION}."
        )
    require("deb")
    tool("cpio")
    loaded = _listed(modules) if modules else None
    with held(name) as source:
        options = _base(base, source)
        with full_disk_named(directory):
            directory.mkdir(parents=True, exist_ok=True)  # to learn now, and not in an hour, that this is impossible
        changed = applied(source, name.series)
        wanted = _wanted(options, source, name, ours=has_our_code(source, changed))
        with package_lock():
            tree = working_tree(source, f"packages-{name.tree}", changed)
            # What differs in little shares it, and is an incremental build.
            chosen = f"{stem(base) or 'own'}{'-trimmed' if modules else ''}"
            home = f"{source.home.name}-{NATIVE.name}-packages-{chosen}-{name.tree}"
            place = cache_directory() / "build" / home
            objects = place / "objects"
            with full_disk_named(place), unfinished_swept(objects):
                _configure(objects, tree, options | wanted, loaded)
                config.check(config.text(wanted), (objects / ".config").read_text())
                _make_packages(objects, tree, f"Building packages of Linux {source.version}, {name.text}")
                for image in place.glob(f"{_IMAGE}*.deb"):
                    _complete(image)
            return _published(place, directory)


def _listed(file: Path) -> str:
    """The text of a list of modules; UsageError if it is none."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"--modules: {file} cannot be read: {reason}.") from None
    if not re.search(r"^\w+ +\d+ ", text, re.MULTILINE):
        raise UsageError(f"--modules: {file} lists no module; it has to be what lsmod prints.")
    return text


def _base(chosen: str, source: Source) -> dict[str, str]:
    """The options of the configuration that was chosen."""
    if chosen and not chosen.startswith(_DEBIAN):
        try:
            options = config.parse(expanded(chosen).read_text())
        except (OSError, UnicodeDecodeError):
            options = {}
        if not options:
            raise UsageError(f"--config: {chosen} is no kernel configuration, nor {_DEBIAN} and a release, such as 13.")
        return options
    release = chosen.removeprefix(_DEBIAN) or ".".join(map(str, config.numbers(source.version)))
    return config.parse(build(KernelRequest(NATIVE, f"image:{_DEBIAN}{release}")).config.read_text())


def _wanted(base: Mapping[str, str], source: Source, name: KernelName, *, ours: bool) -> dict[str, str]:
    """What is otherwise than in the base."""
    fragment = config.parse((KERNEL / "config/packages.config").read_text())
    wanted = {option: value for option, value in fragment.items() if option in base}
    if ours and base.get("CONFIG_DEBUG_FS") == "y":
        wanted["CONFIG_PAGE_TOUCH"] = "y"
    suffix = "" if name.label == PATCHED else f"-{name.label}"
    return {"CONFIG_LOCALVERSION": f'"-foliolab{suffix}"'} | config.known(wanted, source.version, ours)


def _configure(objects: Path, tree: Path, options: Mapping[str, str], loaded: str | None) -> None:
    write_atomic(objects / ".config", config.text(options))
    make = [tool("make"), "--silent", "-C", str(tree), f"O={objects}"]
    run_make([*make, "olddefconfig"], objects, "config", "Configuring")
    if loaded is not None:
        write_atomic(objects / "loaded", loaded)
        # What becomes visible by leaving modules out is answered with its default.
        command = ["/bin/sh", "-c", 'yes "" | "$@"', "sh", *make, f"LSMOD={objects / 'loaded'}", "localmodconfig"]
        run_make(command, objects, "modules", "Leaving out modules that are not listed")


def _make_packages(objects: Path, tree: Path, title: str) -> None:
    for package in objects.parent.glob("*.deb"):
        package.unlink()
    command = [
        "env", "LC_ALL=C", "DEB_BUILD_OPTIONS=terse", "DEB_BUILD_PROFILES=pkg.linux-upstream.nokerneldbg",
        tool("make"), "--silent", f"-j{len(os.sched_getaffinity(0))}", "-C", str(tree), f"O={objects}",
        # What packages that takes was looked at before, and by the programs that they bring.
        "DPKG_FLAGS=-d", "KDEB_CHANGELOG_DIST=unstable", "bindeb-pkg",
    ]  # fmt: skip
    run_make(command, objects, "packages", title)


def _complete(package: Path) -> None:
    """Have the package of a kernel leave nothing behind when it is removed."""
    dpkg_deb = tool("dpkg-deb")
    release = package.name.removeprefix(_IMAGE).partition("_")[0]
    with emptied(package.parent / "completing") as scratch:
        tree, new = scratch / "tree", scratch / package.name
        run([dpkg_deb, "--raw-extract", str(package), str(tree)], BuildError)
        postrm = tree / "DEBIAN/postrm"
        script, end, rest = postrm.read_text().rpartition("exit 0\n")
        if not end or rest:
            raise BuildError(f"{package.name} has a postrm of another form than is known.")
        postrm.write_text(script + _LAST_WORDS.format(release=release))
        run([dpkg_deb, "--root-owner-group", "--build", str(tree), str(new)], BuildError)
        new.rename(package)


def _published(place: Path, directory: Path) -> tuple[Path, ...]:
    """Copy the packages that people install; that of headers for programs would replace the distribution's own."""
    made = sorted(file for file in place.glob("*.deb") if file.name.startswith((_IMAGE, "linux-headers-")))
    if not any(file.name.startswith(_IMAGE) for file in made):
        raise BuildError(f"make has made no package of the kernel in {place}.")
    with full_disk_named(directory):
        for file in made:
            partial = directory / f".{file.name}.partial"
            shutil.copyfile(file, partial)
            partial.rename(directory / file.name)
    return tuple(directory / file.name for file in made)
