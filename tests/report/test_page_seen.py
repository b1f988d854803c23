# SPDX-License-Identifier: GPL-2.0-only
"""The page of pictures as readers have it: in a browser, on a desktop and on a phone, light and dark."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from foliolab.cli import report
from foliolab.cli.main import main
from foliolab.device import device_of
from foliolab.process import find, package_of
from foliolab.simulate.suite import load_suite
from tests.browser import CHROMIUM, Browser
from tests.report.pages import page
from tests.report.seen import faults

pytestmark = pytest.mark.skipif(
    not find(CHROMIUM), reason=f"{package_of(CHROMIUM)} is not installed, without which nothing opens a page"
)

DESKTOP, PHONE = 1280, 360
NARROWEST = 981
"""With which the pictures for a desktop are the smallest."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the released samples, and of all patterns and memories of the model.

    One device, one ``read_ahead_kb`` and few ways to read have to do: the whole model takes minutes.
    """
    suite = load_suite()
    shown = ("off", "published", "xnu", "adaptive")
    small = replace(
        suite,
        ways=tuple(way for way in suite.ways if way.name in shown),
        read_ahead_kb=suite.read_ahead_kb[:1],
        windows_kb=(4, 128),
    )
    file = tmp_path_factory.mktemp("released") / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "load_suite", lambda: small)
        patch.setattr(report, "load_devices", lambda: {"nvme": device_of("nvme")})
        assert main(["report", "--released", "--html", str(file)]) == 0
    return file


@pytest.fixture(scope="module")
def whole() -> str:
    """A page that nothing is wrong with."""
    return page()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "form"), [(DESKTOP, "wide"), (NARROWEST, "wide"), (PHONE, "narrow")])
def test_all_of_it_can_be_read(released: Path, browser: Browser, width: int, form: str, scheme: str) -> None:
    assert faults(browser, released, width, scheme, form) == []


IN_THE_FIRST_PICTURE = "</svg>"
AT_THE_END = "</main>"
INK = "fill:var(--ink);font:11px sans-serif"


@pytest.mark.parametrize(
    ("place", "added", "kinds"),
    [
        (AT_THE_END, "", set()),
        (AT_THE_END, '<img src="http://127.0.0.1:9/picture">', {"request", "load", "console"}),
        (AT_THE_END, '<link rel="stylesheet" href="style.css">', {"request", "load", "console"}),
        (AT_THE_END, "<script>console.warn('no')</script>", {"console"}),
        (AT_THE_END, "<script>nothing.there()</script>", {"console"}),
        (AT_THE_END, '<div style="width:2000px">wide</div>', {"out"}),
        (AT_THE_END, '<p style="margin-top:-65px">the last words</p>', {"over"}),
        (AT_THE_END, '<p style="font-size:8px">fine print</p>', {"small"}),
        (AT_THE_END, '<p style="color:#808080">grey, on white</p>', {"faint"}),
        (AT_THE_END, '<figure id="bare"><code>./lab simulate</code></figure>', {"picture"}),
        (AT_THE_END, "<style>.narrow{display:block}</style>", {"picture"}),
        (AT_THE_END, "<style>.wide{display:none}</style>", {"picture"}),
        (AT_THE_END, "<style>code{display:none}</style>", {"command"}),
        (" --all</code>", " --nothing", {"command"}),
        (IN_THE_FIRST_PICTURE, f'<text x="1070" y="200" style="{INK}">beyond</text>', {"out"}),
        (IN_THE_FIRST_PICTURE, f'<text x="600" y="200" style="{INK};font-size:8px">fine print</text>', {"small"}),
        (
            IN_THE_FIRST_PICTURE,
            f'<rect x="590" y="180" width="90" height="40" style="fill:var(--muted)"/>'
            f'<text x="600" y="200" style="{INK}">on grey</text>',
            {"faint"},
        ),
        (
            IN_THE_FIRST_PICTURE,
            f'<text x="600" y="200" style="{INK}">one</text><text x="605" y="203" style="{INK}">other</text>',
            {"over"},
        ),
    ],
)
def test_what_is_wrong_is_seen(
    place: str, added: str, kinds: set[str], whole: str, tmp_path: Path, browser: Browser
) -> None:
    assert place in whole
    file = tmp_path / "page.html"
    file.write_text(whole.replace(place, added + place, 1))
    assert {fault.partition(":")[0] for fault in faults(browser, file, DESKTOP, "light", "wide")} == kinds


def test_what_is_wrong_in_the_dark_only_is_seen(whole: str, tmp_path: Path, browser: Browser) -> None:
    file = tmp_path / "page.html"
    file.write_text(whole.replace(AT_THE_END, f'<p style="color:#1f2328">black on black</p>{AT_THE_END}'))
    assert faults(browser, file, PHONE, "light", "narrow") == []
    assert faults(browser, file, PHONE, "dark", "narrow") == ["faint: black on black, 1.2:1"]
