# SPDX-License-Identifier: GPL-2.0-only
"""The mailboxes in release/, by which git takes our changes without the lab."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foliolab.files import FIRST_STEPS, KERNEL, RELEASE, write_atomic
from foliolab.kernel.debian import from_debian
from foliolab.kernel.export import mailbox
from foliolab.kernel.series import Feature, bases, read_series
from foliolab.kernel.source import Source
from foliolab.progress import Reporter


@dataclass(frozen=True)
class Mailbox:
    """A file of release/, and what it is made of."""

    name: str
    version: str
    """Of Linux."""
    kernel: Path
    """The directory with the patches, and with the files that come with them."""
    left_out: tuple[str, ...] = ()
    """Patches of the series that are not in it."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """What is in it."""
        return tuple(feature for feature in self._all if feature.patch.name not in self.left_out)

    @property
    def _all(self) -> tuple[Feature, ...]:
        return read_series(self.version, self.kernel)

    def made(self, source: Source) -> str:
        """Its text, as it is to be for the patches of now."""
        return mailbox(source, self._all, self.kernel, self.left_out)


def mailboxes() -> Iterator[Mailbox]:
    """All of them: for each version of Linux the series, that without mprotect, and the first steps for mainline."""
    for version in bases():
        yield Mailbox(f"{version}.mbox", version, KERNEL)
        patches = (feature.patch.name for feature in read_series(version))
        mprotect = tuple(patch for patch in patches if patch.startswith("mprotect-"))
        yield Mailbox(f"{version}-without-mprotect.mbox", version, KERNEL, mprotect)
    for version in bases(FIRST_STEPS):
        yield Mailbox(f"first-steps-{version}.mbox", version, FIRST_STEPS)


def release(report: Reporter, directory: Path = RELEASE) -> list[Path]:
    """Make all mailboxes in ``directory``; returns the files that were not as they are to be."""
    written = []
    for each in mailboxes():
        text, file = each.made(from_debian(each.version, report)), directory / each.name
        if not file.exists() or file.read_text() != text:
            write_atomic(file, text)
            written.append(file)
    return written
