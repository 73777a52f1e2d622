// The page's frame: which view is shown, the colours, the forum's name. A view is a function that fills a section and returns
// what is to be called when it is left.

import { status } from "./api.js";
import { showAsk } from "./ask.js";
import { fill, h, icon, PATHS } from "./dom.js";
import { showExplore } from "./explore.js";
import { showReview } from "./review.js";
import { showStatus } from "./status.js";

const VIEWS = {
  ask: { title: "Ask", show: showAsk },
  explore: { title: "Explore", show: showExplore },
  review: { title: "Review", show: showReview },
  status: { title: "Status", show: showStatus },
};
const THEMES = { system: PATHS.half, light: PATHS.sun, dark: PATHS.moon };
const main = document.getElementById("main");
let leave = null;
let shownName = "";

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const known = Object.hasOwn(VIEWS, name) ? name : "ask";
  leave?.();
  document.getElementById("key-dialogue").close(""); // it was asked for by the view that is left
  const section = h("section", { class: `view ${known}` });
  fill(main, section);
  leave = VIEWS[known].show(section, { id: decoded(rest.join("/")), query: new URLSearchParams(query) }) ?? null;
  document.title = `${VIEWS[known].title} · askalike`;
  for (const link of document.querySelectorAll(".views a")) {
    if (link.getAttribute("href") === `#/${known}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shownName && shownName !== known) section.querySelector("h1")?.focus();
  if (shownName && shownName !== known) window.scrollTo(0, 0);
  shownName = known;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function offerThemes() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const current = () => root.dataset.theme ?? "system";
  const label = () =>
    fill(
      button,
      icon(THEMES[current()]),
      h("span", { class: "unseen" }, "Colours: "),
      h("span", { class: "word" }, current()),
    );
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(current()) + 1) % names.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      localStorage.setItem("askalike.theme", next);
    } catch {
      // Storage is forbidden: the choice holds until the page is closed.
    }
    label();
  });
  label();
}

async function nameForum() {
  try {
    const { forum } = await status();
    if (forum.name) fill(document.getElementById("forum-name"), forum.name.replace(/\.forum$/, ""));
  } catch {
    // The view that is shown says what is wrong; a name that is missing says nothing more.
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", route);
offerThemes();
route();
nameForum();
