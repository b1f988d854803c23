# SPDX-License-Identifier: GPL-2.0-only
"""Files of the cache for other hosts: offered by HTTP, fetched once.

Their names say what was asked for, and hosts may have made that with other programs, a disk with another mkfs for
instance. All take the very file that is offered, by a hash of its content.
"""

import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from http.client import HTTPException
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_urlsafe

from foliolab.errors import ClusterError
from foliolab.files import cache_directory, full_disk_named, locked, sha256


@dataclass(frozen=True)
class FileSource:
    """Where files of a cache can be had."""

    url: str
    """Known to those who may have them."""
    cache: Path
    """The directory that they are below, on their own host."""
    offered: dict[str, str] = field(default_factory=dict)
    """Hashes of their contents, by their paths below it."""

    def offer(self, files: Iterable[Path]) -> None:
        self.offered.update({str(file.relative_to(self.cache)): _content_of(file) for file in map(resolved, files)})


def resolved(file: Path) -> Path:
    """Where a file of the cache of this host really is."""
    return file.parent.resolve() / file.name


def _content_of(file: Path) -> str:
    """A hash of what is in a file, which is read once as long as nobody changes it."""
    status = file.stat()
    return _content(file, status.st_ino, status.st_size, status.st_mtime_ns)


@cache
def _content(file: Path, *_: int) -> str:
    return sha256(file)


@contextmanager
def serving(address: str) -> Iterator[FileSource]:
    """Offer files at an address of this host, to whoever has the URL, until the block ends."""
    secret = token_urlsafe(16)
    offered: dict[str, str] = {}
    root = cache_directory().resolve()

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            """The file that is offered there, or nothing."""
            _, asked, name = [*path.split("/", 2), "", ""][:3]
            return str(root / name) if asked == secret and name in offered else ""

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A worker that has gone asks again, or another one does."""

    with Server((address, 0), partial(Handler, directory=root)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield FileSource(f"http://{address}:{server.server_port}/{secret}/", root, offered)
        finally:
            server.shutdown()
            thread.join()


def fetch(path: Path, source: FileSource) -> Path:
    """Where this host has a file of the cache of ``source``; fetched if need be. ClusterError if it cannot be had."""
    name = str(path.relative_to(source.cache))
    content = source.offered[name]
    if (here := cache_directory().resolve() / name).exists() and _content_of(here) == content:
        return here
    # Apart, because what the cache has of its own is whole directories.
    mine = cache_directory().resolve() / "fetched" / content[:16] / path.name
    with locked(mine.with_name(f".{mine.name}.fetch")), full_disk_named(mine.parent):
        partial = mine.with_name(f".{mine.name}.partial")
        try:
            if not (mine.exists() and _content_of(mine) == content):
                # A proxy has nothing to do with hosts of one cluster, and is not to know the URL.
                direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                with direct.open(source.url + name, timeout=60) as answer, partial.open("wb") as file:
                    shutil.copyfileobj(answer, file, 1 << 20)
                if _content_of(partial) != content:
                    raise ClusterError(f"{name} could not be fetched: what came is not what was offered.")
                partial.replace(mine)
        except (urllib.error.URLError, ConnectionError, TimeoutError, HTTPException) as error:
            raise ClusterError(f"{name} could not be fetched from {source.url.split('/')[2]}: {error}.") from None
        finally:
            partial.unlink(missing_ok=True)
    return mine
