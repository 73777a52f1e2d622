"""Takes the pictures of the page and of the widget that the documents show.

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
from tools.render import REPOSITORY
from tools.serving import serving, wait_for_pairs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = REPOSITORY / "docs" / "screens"
LARGEST_BYTES = 150_000
SIZE = (1120, 740)
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


def review(page: Page) -> None:
    """Look at a pair whose titles ask the same in other words."""
    page.goto("./#/review?minimum=0.2")
    page.wait_for_selector("#pair details")
    while PAIR not in page.locator("#pair h2").first.inner_text():
        page.keyboard.press("j")
        page.wait_for_selector("#pair details")


def widget(page: Page) -> None:
    """Type into the ask form of the example forum."""
    page.goto("./example.html")
    page.fill("#title", "my bluetooth headphones sound awful in calls")
    page.wait_for_selector("[data-askalike-suggestions] li")
    page.locator("[data-askalike-suggestions] summary").first.click()


VIEWS: dict[str, Callable[[Page], None]] = {
    "ask": ask,
    "review": review,
    "widget": widget,
}


def take(browser: Browser, address: str, name: str) -> None:
    """Take the picture of a view."""
    page = browser.new_page(
        base_url=f"{address}/",
        viewport={"width": SIZE[0], "height": SIZE[1]},
        color_scheme="light",
        locale="en-GB",
        reduced_motion="reduce",
    )
    VIEWS[name](page)
    picture = FOLDER / f"{name}-light.png"
    picture.write_bytes(_with_palette(page.screenshot()))
    size_bytes = picture.stat().st_size
    print(f"wrote {picture.relative_to(REPOSITORY)}, {size_bytes // 1000} kB")
    if size_bytes > LARGEST_BYTES:
        raise SystemExit(f"{picture.name} is too large for the documents")
    page.close()


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
            for name in chosen:
                take(browser, address, name)
            browser.close()


if __name__ == "__main__":
    main()
