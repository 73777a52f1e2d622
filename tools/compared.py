"""Draws the boxes of similar questions of Stack Overflow, Discourse and GitHub beside ours.

Command: ``python -m tools.compared``, for docs/compared.md. It needs npm, playwright and chromium. The sites themselves
are not asked: their boxes are drawn with markup of our own in the style sheets that they publish (Stacks and Primer,
installed by npm for the run); Discourse publishes none, so its box has the sizes, places and colours that its source
code names. Each shows the same question and the same hits, those that askalike finds in the bundled forum.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from askalike import Forum
from askalike.data import bundled_forum
from askalike.server.app import build
from askalike.server.settings import Limits, ServeSettings
from tools.screenshots import BODY, TITLE, keep
from tools.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

PACKAGES = (
    "@stackoverflow/stacks@3.0.0",
    "@primer/css@22.3.2",
    "@primer/primitives@11.10.0",
    "@primer/octicons@19.42.0",
)
SIZE = (720, 560)
MORE = " I tried another headset and another laptop, and it is the same with both of them in every program."

Hits = Sequence[Mapping[str, Any]]


def stack_overflow(hits: Hits) -> str:
    """Return the step "Review questions already on Stack Overflow" of the ask page."""
    rows = "".join(
        f"""<div class="s-post-summary{" s-post-summary__answered" if accepted(one) else ""} p12">
          <div class="s-post-summary--stats">
            <div class="s-post-summary--stats-answers">
              {one["answers"]} answer{"" if one["answers"] == 1 else "s"}</div></div>
          <div class="s-post-summary--content">
            <a class="s-post-summary--title s-post-summary--title-link" href="#">{escape(one["question"]["title"])}</a>
            <p class="s-post-summary--excerpt v-truncate2">{escape(one["excerpt"])}</p>
            <div class="s-post-summary--meta">{tags(one, "s-tag s-tag__sm")}</div></div></div>"""
        for one in hits
    )
    return f"""<body class="theme-system p16"><div class="s-card bs-sm">
      <label class="s-label" for="q">Title</label><input id="q" class="s-input mb16" value="{escape(TITLE)}">
      <label class="s-label" for="b">What are the details of your problem?</label>
      <div class="s-textarea d-block mb16 fs-body1">{escape(BODY)}</div>
      <div class="s-label">Review questions already on Stack Overflow to see if your question is a duplicate.
      </div>
      <p class="fs-caption mb8">Clicking on these questions will open them in a new tab for you to review.</p>
      <div class="ba bc-black-225 bar-sm"><div class="p12 bg-black-050 bb bc-black-225 d-flex jc-space-between">
        <span>Do any of these posts answer your question?</span><span>⌃</span></div>{rows}</div></div></body>"""


def discourse(hits: Hits) -> str:
    """Return the composer with "Your topic is similar to…" over its preview."""
    rows = "".join(
        f"""<li><a href="#">{escape(one["question"]["title"])}</a><span class="tags">
          <span class="category">Computers</span>{tags(one, "tag")}</span>
          <span class="blurb">{date(one)} - {escape(one["excerpt"])}</span></li>"""
        for one in hits
    )
    # sizes and colours: its composer is fixed to the bottom; the box takes the right half, 8 pixels from each edge
    return f"""<style>
      body {{ margin: 0; font: 15px/1.4 Arial, sans-serif; color: #222; background: #f5f5f5 }}
      main {{ padding: 16px }} main p {{ border-bottom: 1px solid #e9e9e9; padding: 12px 0; margin: 0; color: #919191 }}
      .composer {{ position: fixed; inset: auto 0 0 0; height: 400px; background: #fff;
        box-shadow: 0 -1px 40px rgb(0 0 0 / 22%) }}
      .grippie {{ height: 11px; background: #08c }} .area {{ position: relative; padding: 8px; height: 372px }}
      .half {{ width: calc(50% - 12px) }} .text {{ height: 205px }}
      .field {{ border: 1px solid #e9e9e9; padding: 8px; margin: 8px 0; box-sizing: border-box }}
      .post {{ background: #08c; color: #fff; padding: 7px 12px; display: inline-block }}
      .popup {{ position: absolute; box-sizing: border-box; width: calc(50% - 8px); inset: 8px 8px 8px auto;
        overflow: auto; padding: 8px 8px 32px; background: #d1f0ff; box-shadow: 0 2px 12px rgb(0 0 0 / 25%) }}
      .popup h3 {{ margin: 0 0 10px; font-size: 17px }}
      .close {{ position: absolute; right: 10px; top: 10px; opacity: .5; font-size: 13px }}
      ul {{ list-style: none; margin: 0; padding: 0 }} li {{ margin-top: 8px }}
      li > a {{ color: #222; text-decoration: none; font-size: 16px }}
      .tags, .blurb {{ display: block; font-size: 13px; color: #646464 }} .tag {{ margin-left: 8px }}
      .category::before {{ content: "■"; color: #08c; margin-right: 5px }}
    </style><main><p>Latest topics</p><p>Which router do you have?</p></main>
    <div class="composer"><div class="grippie"></div><div class="area"><div class="half">
      <div>+ Create a new Topic</div><div class="field">{escape(TITLE)}</div><div class="field">■ Computers</div>
      <div class="field text">{escape(BODY)}</div><span class="post">+ Create Topic</span></div>
      <div class="popup"><span class="close">esc ✕</span>
      <h3>Your topic is similar to…</h3><ul>{rows}</ul></div></div></div>"""


def github(hits: Hits, icon: str) -> str:
    """Return the form of a new issue with its potential duplicates; where they stand and how a row looks is guessed."""
    rows = "".join(
        f"""<li class="p-2 d-flex"><span class="color-fg-done mr-2" style="fill:currentColor">{icon}</span>
          <a class="Link--primary text-bold" href="#">{escape(one["question"]["title"])}</a>
          <span class="color-fg-muted ml-2">#{one["question"]["id"].strip("q")}</span></li>"""
        for one in hits[:3]
    )
    return f"""<body class="p-4"><h1 class="h3 mb-3">Create new issue</h1>
      <label class="text-bold d-block mb-1">Add a title *</label>
      <div class="form-control width-full mb-3">{escape(TITLE)}</div>
      <label class="text-bold d-block mb-1">Add a description</label>
      <div class="form-control width-full mb-3" style="height:170px">{escape(BODY + MORE)}</div>
      <div class="border rounded-2 mb-3"><div class="border-bottom p-2 color-fg-muted">Potential duplicates</div>
      <ul>{rows}</ul></div>
      <div class="d-flex flex-justify-end"><button class="btn mr-2">Cancel</button>
      <button class="btn btn-primary">Create</button></div></body>"""


def accepted(hit: Mapping[str, Any]) -> bool:
    """Return whether the best answer of a hit is the accepted one."""
    return bool(hit["best_answer"] and hit["best_answer"]["accepted"])


def tags(hit: Mapping[str, Any], style: str) -> str:
    """Return a hit's tags as markup."""
    return "".join(f'<span class="{style} mr4">{escape(one)}</span>' for one in hit["question"]["tags"])


def date(hit: Mapping[str, Any]) -> str:
    """Return the day that a hit was asked."""
    return str(hit["question"]["created"] or "")[:10]


def draw(page: Page, address: str, packages: Path) -> None:
    """Take the pictures: theirs from their markup, ours from the service."""
    request = Request(
        f"{address}/v1/similar",
        json.dumps({"title": TITLE, "body": BODY, "k": 5, "minimum": "default"}).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(request) as answer:
        hits = json.load(answer)["hits"]
    icon = (packages / "@primer/octicons/build/svg/issue-closed-16.svg").read_text(encoding="utf-8")
    primer = [
        packages / "@primer/primitives/dist/css" / one for one in ("primitives.css", "functional/themes/light.css")
    ]
    drawn: dict[str, tuple[Callable[[], str], list[Path]]] = {
        "stack-overflow": (lambda: stack_overflow(hits), [packages / "@stackoverflow/stacks/dist/css/stacks.css"]),
        "discourse": (lambda: discourse(hits), []),
        "github": (lambda: github(hits, icon), [*primer, packages / "@primer/css/dist/primer.css"]),
    }
    for name, (markup, styles) in drawn.items():
        page.set_content(
            f'<!doctype html><html lang="en" data-color-mode="light" data-light-theme="light">{markup()}</html>'
        )
        for style in styles:
            page.add_style_tag(path=style)
        keep(page, f"compared-{name}")
    page.goto(f"{address}/example.html")
    page.add_style_tag(content="header, h1, .about, h2, pre, pre ~ p { display: none }")
    page.fill("#title", TITLE)
    page.fill("#body", BODY)
    page.wait_for_selector("[data-askalike-suggestions] li")
    page.wait_for_timeout(800)
    page.locator("[data-askalike-suggestions] summary").first.click()
    keep(page, "compared-widget")
    page.set_viewport_size({"width": SIZE[0] * 3 // 2, "height": SIZE[1] * 3 // 2})
    page.goto(f"{address}/#/ask")
    page.fill("#title", TITLE)
    page.fill("#body", BODY)
    page.wait_for_selector(".hit mark")
    page.wait_for_timeout(800)
    keep(page, "compared-page")


def main() -> None:
    """Install the style sheets for the run and take all pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", "--prefix", folder, *PACKAGES], check=True)
        path = Path(folder) / "homenet.forum"
        with Forum.create(path) as forum:
            forum.load(bundled_forum())
        application = build(ServeSettings(str(path), limits=Limits(rate=0.0)))
        with serving(application) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(
                viewport={"width": SIZE[0], "height": SIZE[1]}, locale="en-GB", reduced_motion="reduce", bypass_csp=True
            )
            draw(page, address, Path(folder) / "node_modules")
            browser.close()


if __name__ == "__main__":
    main()
