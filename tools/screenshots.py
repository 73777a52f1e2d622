"""Takes the pictures of the page and of the widget that the documents show, light and dark.

Command: ``python -m tools.screenshots``. It serves the bundled forum on this machine and needs playwright and chromium.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from askalike import Forum
from askalike.data import bundled_forum
from askalike.server.app import build
from askalike.server.settings import Limits, ServeSettings
from tools.results import REPOSITORY
from tools.serving import serving, wait_for_pairs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = REPOSITORY / "docs" / "screens"
LARGEST_BYTES = 150_000
SIZE = (1120, 740)
PHONE = (320, 640)
TITLE = "Bluetooth headphones sound awful in calls"
PAIR = "REMOTE HOST"
BODY = "Music is fine. As soon as a call starts they sound like an old telephone."


def ask(page: Page) -> None:
    """Type a question and unfold the first answer."""
    page.goto("./#/ask")
    page.fill("#title", TITLE)
    page.fill("#body", BODY)
    page.wait_for_selector(".hit mark")
    page.wait_for_timeout(600)
    page.locator(".unfold").first.click()
    page.locator("#title").focus()


def explore(page: Page) -> None:
    """Stand at a question."""
    page.goto("./#/explore/q1001")
    page.wait_for_selector(".nearness")


def review(page: Page) -> None:
    """Look at a pair whose titles say the same in other words."""
    page.goto("./#/review")
    page.wait_for_selector("#pair details")
    while PAIR not in page.locator("#pair h2").first.inner_text():
        page.keyboard.press("j")
        page.wait_for_selector("#pair details")


def status(page: Page) -> None:
    """Look at the state after a few searches."""
    page.goto("./#/status")
    page.wait_for_selector(".tile")


def widget(page: Page) -> None:
    """Type into the ask form of the example forum."""
    page.goto("./example.html")
    page.fill("#title", "my bluetooth headphones sound awful in calls")
    page.wait_for_selector("[data-askalike-suggestions] li")
    page.locator("[data-askalike-suggestions] summary").first.click()


VIEWS: dict[str, Callable[[Page], None]] = {
    "ask": ask,
    "explore": explore,
    "review": review,
    "status": status,
    "widget": widget,
}


def take(browser: Browser, address: str, names: list[str], scheme: str, size: tuple[int, int], suffix: str) -> None:
    """Take pictures of these views in one size and one set of colours."""
    context = browser.new_context(
        base_url=f"{address}/",
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-GB",
        reduced_motion="reduce",
    )
    page = context.new_page()
    for name in names:
        VIEWS[name](page)
        keep(page, f"{name}-{scheme}{suffix}")
    context.close()


def keep(page: Page, name: str) -> None:
    """Write a picture of what a page shows into the folder of the documents' pictures."""
    picture = FOLDER / f"{name}.png"
    picture.write_bytes(_with_palette(page.screenshot()))
    size_bytes = picture.stat().st_size
    print(f"wrote {picture.relative_to(REPOSITORY)}, {size_bytes // 1000} kB")
    if size_bytes > LARGEST_BYTES:
        raise SystemExit(f"{picture.name} is too large for the documents")


def _with_palette(png: bytes) -> bytes:
    """Return a picture in 256 colours instead of three bytes a pixel: a third of the size, and nobody sees it."""
    from PIL import Image

    picture = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        picture, "PNG", optimize=True
    )
    return picture.getvalue()


def main() -> None:
    """Take every picture; those named on the command line alone, where some are."""
    from playwright.sync_api import sync_playwright

    chosen = sys.argv[1:] or list(VIEWS)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "homenet.forum"
        with Forum.create(path) as forum:
            forum.load(bundled_forum())
        settings = ServeSettings(str(path), limits=Limits(rate=0.0))
        with serving(build(settings)) as address, sync_playwright() as playwright:
            wait_for_pairs(address)
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for scheme in ("light", "dark"):
                take(browser, address, chosen, scheme, SIZE, "")
                take(browser, address, [name for name in chosen if name == "ask"], scheme, PHONE, "-phone")
            browser.close()


if __name__ == "__main__":
    main()
