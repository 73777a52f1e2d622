// Ask: similar questions while one types. Each stroke waits a moment, and an answer that is out of date is dropped.

import { similar } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { hitCard } from "./hit.js";
import { note, waiting, wrong } from "./notes.js";
import { count, milliseconds } from "./words.js";

const PAUSE_MS = 220;
const LEAST_LETTERS = 3;
const HITS = 10;
const LONGEST_TITLE = 1000;
const LONGEST_BODY = 200000;
const SHOWN_WEIGHTS = 24;
const kept = { title: "", body: "", answer: null, opened: new Set() };

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
  const weights = h("div", { class: "weights" });
  const heading = h("h2", { id: "found" }, "Asked before");
  const took = h("span", { class: "aside" });
  const results = h("div", { class: "results" });
  const found = h(
    "section",
    { class: "found", "aria-labelledby": "found" },
    h("div", { class: "label" }, heading, took),
    results,
  );
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
        weights,
      ),
      found,
    ),
  );
  return listen({ title, body, weights, took, results });
}

function listen(parts) {
  let timer = 0;
  let running = null;
  const look = () => {
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
  parts.again = look;
  if (kept.answer) draw(parts, kept.answer);
  else look();
  if (!kept.title && matchMedia("(hover: hover)").matches) parts.title.focus({ preventScroll: true });
  return () => {
    clearTimeout(timer);
    running?.abort();
  };
}

async function search(parts, signal) {
  kept.title = parts.title.value;
  kept.body = parts.body.value;
  kept.answer = null;
  if (`${kept.title}${kept.body}`.trim().length < LEAST_LETTERS) return drawEmpty(parts);
  parts.results.setAttribute("aria-busy", "true");
  if (!parts.results.querySelector(".hit")) fill(parts.results, waiting(3));
  try {
    const answer = await similar(
      { title: kept.title, body: kept.body, k: HITS, markup: "markdown", explain: true },
      signal,
    );
    if (signal.aborted) return;
    kept.answer = answer;
    draw(parts, answer);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    fill(parts.took);
    fill(parts.results, wrong(error, parts.again));
  }
  parts.results.removeAttribute("aria-busy");
}

function drawEmpty({ results, took, weights }) {
  results.removeAttribute("aria-busy");
  fill(took);
  fill(weights);
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

function draw({ results, took, weights }, answer) {
  results.removeAttribute("aria-busy");
  const readAs = (answer.corrections ?? []).map(({ written, meant }) => `${written} read as ${meant}`);
  const found = answer.hits.length ? [`${count(answer.hits.length, "question")} in ${milliseconds(answer.took_ms)}`] : [];
  fill(took, [...readAs, ...found].join(" · "));
  drawWeights(weights, answer.hits[0]?.attended);
  const lacking = answer.notice ? note("Part of the search could not be used.", answer.notice) : null;
  if (!answer.hits.length) {
    announce("No similar question found");
    fill(
      results,
      lacking,
      note(
        "No similar questions.",
        "No similar questions found. Your question looks new.",
      ),
    );
    return;
  }
  announce(`${count(answer.hits.length, "similar question")} found`);
  fill(
    results,
    lacking,
    h(
      "ol",
      { class: "hits" },
      answer.hits.map((hit) => hitCard(hit, kept.opened)),
    ),
  );
}

/** How much the encoder takes of each word of the question: the more, the darker its line. */
function drawWeights(place, attended) {
  const words = [...(attended?.query_title ?? []), ...(attended?.query_body ?? [])].slice(0, SHOWN_WEIGHTS);
  if (!words.length) return fill(place);
  const least = Math.min(...words.map((one) => one.weight));
  const span = Math.max(...words.map((one) => one.weight)) - least || 1;
  const shown = words.map(({ word, weight }) => {
    const piece = h("span", { class: "weighed", title: weight.toFixed(2) }, word);
    piece.style.setProperty("--weight", ((weight - least) / span).toFixed(3));
    return [piece, " "];
  });
  return fill(
    place,
    h("h2", { class: "small" }, "How the search weighs your words: a stronger line means more weight"),
    h("p", {}, shown),
  );
}
