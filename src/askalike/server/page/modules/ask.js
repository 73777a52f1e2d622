// Ask: similar questions while one types. Each stroke waits a moment, and an answer that is out of date is dropped.

import { opened, similar, status } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { foldedHits, hitRow } from "./hit.js";
import { isLikely } from "./likelihood.js";
import { webAddress } from "./links.js";
import { note, waiting, wrong } from "./notes.js";
import { count, milliseconds } from "./words.js";

const PAUSE_MS = 220;
const LEAST_LETTERS = 3;
const HITS = 10;
const LONGEST_TITLE = 1000;
const LONGEST_BODY = 200000;
const kept = { title: "", body: "", isAnswered: false, answer: null, opened: new Set() };
const SLOW_MS = 1500;

/** Fills the view; what was typed is still there when one comes back. */
export function showAsk(section, { query }) {
  if (query.has("title"))
    Object.assign(kept, { title: query.get("title"), body: query.get("body") ?? "", answer: null });
  const title = h("input", {
    class: "field title",
    id: "title",
    type: "text",
    maxlength: LONGEST_TITLE,
    autocomplete: "off",
    placeholder: "In one line",
  });
  const body = h("textarea", {
    class: "field",
    id: "body",
    maxlength: LONGEST_BODY,
    placeholder: "What happens, what you have tried. Details improve the search.",
  });
  title.value = kept.title;
  body.value = kept.body;
  const answered = h("input", { type: "checkbox", id: "answered" });
  answered.checked = kept.isAnswered;
  const heading = h("h2", { id: "found" }, "Asked before");
  const took = h("p", { class: "aside took" });
  const results = h("div", { class: "results" });
  const panel = h(
    "section",
    { class: "found", "aria-labelledby": "found" },
    h("div", { class: "label" }, heading, h("label", { class: "switch" }, answered, "With an answer only")),
    took,
    results,
  );
  results.addEventListener("click", ({ target }) => {
    const id = target.closest("h3 a, .foot a") && target.closest(".hit")?.dataset.id;
    if (id) opened(id);
  });
  section.append(
    h("h1", { tabindex: "-1" }, "Has it been asked before?"),
    h(
      "div",
      { class: "halves" },
      h(
        "form",
        { class: "compose", on: { submit: (event) => event.preventDefault() } },
        h("div", {}, h("label", { class: "label", for: "title" }, "Your question"), title),
        h(
          "div",
          {},
          h("label", { class: "label", for: "body" }, "Details", h("span", { class: "aside" }, "optional")),
          body,
        ),
      ),
      panel,
    ),
  );
  return listen({ section, title, body, answered, took, results, isLinked: query.has("title") });
}

/** Arrows lead from the title's field down the titles of the hits and back; Enter opens one, as of any link. */
function walk({ title, results }, event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const stops = [title, ...results.querySelectorAll("h3 a")].filter((stop) => stop.checkVisibility());
  const at = stops.indexOf(event.target);
  const next = stops[at + step];
  if (at < 0 || !next) return;
  event.preventDefault();
  next.focus();
}

function listen(parts) {
  let timer = 0;
  let running = null;
  const look = () => {
    clearTimeout(timer);
    running?.abort();
    running = new AbortController();
    search(parts, running.signal);
  };
  const later = () => {
    running?.abort(); // what is on its way answers a question that is no longer asked
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  };
  parts.title.addEventListener("input", later);
  parts.body.addEventListener("input", later);
  parts.title.addEventListener("keydown", ({ key }) => key === "Enter" && look());
  parts.section.addEventListener("keydown", (event) => walk(parts, event));
  parts.answered.addEventListener("change", look);
  parts.again = look;
  if (kept.answer) draw(parts, kept.answer);
  else look();
  const isFirst = parts.isLinked || !kept.title; // the keys work at once; who comes back goes on from the heading
  if (isFirst && matchMedia("(hover: hover)").matches) parts.title.focus({ preventScroll: true });
  return () => {
    clearTimeout(timer);
    running?.abort();
  };
}

async function search(parts, signal) {
  kept.title = parts.title.value;
  kept.body = parts.body.value;
  kept.isAnswered = parts.answered.checked;
  kept.answer = null;
  if (`${kept.title}${kept.body}`.trim().length < LEAST_LETTERS) return drawEmpty(parts);
  parts.results.setAttribute("aria-busy", "true");
  if (!parts.results.querySelector(".hit")) fill(parts.results, waiting(3));
  const slow = setTimeout(() => fill(parts.took, "Still searching…"), SLOW_MS);
  try {
    const query = { title: kept.title, body: kept.body, k: HITS, markup: "markdown", order: "help" };
    const answer = await similar(kept.isAnswered ? { ...query, answered: true } : query, signal);
    if (signal.aborted) return;
    kept.answer = answer;
    draw(parts, answer);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    fill(parts.took);
    fill(parts.results, wrong(error, parts.again));
  } finally {
    clearTimeout(slow);
  }
  parts.results.removeAttribute("aria-busy");
}

function drawEmpty({ results, took }) {
  results.removeAttribute("aria-busy");
  fill(took);
  fill(
    results,
    h(
      "div",
      { class: "note" },
      h(
        "div",
        {},
        h("strong", {}, "Start typing."),
        "Similar questions appear here with their best answers, found by words and by meaning.",
      ),
    ),
  );
}

function draw({ results, took }, answer) {
  results.removeAttribute("aria-busy");
  const readAs = (answer.corrections ?? []).map(({ written, meant }) => `${written} read as ${meant}`);
  const likely = answer.hits.filter((hit) => isLikely(hit, answer.least));
  const summary = likely.length ? [`${count(likely.length, "question")} in ${milliseconds(answer.took_ms)}`] : [];
  if (likely.length > 1) summary.push("good answers move up");
  fill(took, [...readAs, ...summary].join(" · "));
  const lacking = answer.notice ? note("Part of the search could not be used.", answer.notice) : null;
  announce(likely.length ? `${count(likely.length, "similar question")} found` : "No similar question found");
  fill(results, lacking, likely.length ? null : nothingLikely(answer.is_new), foldedHits(answer.hits, answer.least, hitList));
}

function nothingLikely(isNew) {
  if (kept.isAnswered) return note("No similar question has an answer.", "Others may be open: look without the box.");
  if (!isNew) return note("No similar question found.", "The search reads this language in part only: try other words.");
  const place = h("span");
  status()
    .then(({ service }) => {
      const address = webAddress(service.ask_url.replace("{title}", encodeURIComponent(kept.title.trim())));
      if (address) fill(place, h("a", { class: "button main", href: address }, "Ask it"));
    })
    .catch(() => {}); // without a link, the sentence stands alone
  return note("Your question looks new.", "Nothing like it was asked before.", place);
}

const hitList = (hits) => h("ol", { class: "card hits" }, hits.map((hit) => hitRow(hit, kept.opened)));
