// Explore: a question, its answers, and its neighbours; each neighbour leads on.

import { groups, neighbours, newest, question as fetchQuestion, similar } from "./api.js";
import { bodyElement } from "./body.js";
import { announce, fill, h, icon, PATHS } from "./dom.js";
import { aboutLine, byLine, exploreAddress, foldedHits, titleLink } from "./hit.js";
import { isLikely, likelihoodLine } from "./likelihood.js";
import { markedRanges } from "./marks.js";
import { note, waiting, wrong } from "./notes.js";
import { count, date, titleOf } from "./words.js";

const NEIGHBOURS = 10;
const LISTED = 12;
const LONGEST_TRAIL = 6;
const SHOWN_LINKS = 3;
const SHOWN_GROUPS = 5;
const KINDS = { "same text": "the same text", linked: "linked by people" };
const LINK_GROUPS = [
  ["Marked a duplicate of", (link) => link.kind === "duplicate" && link.direction === "to"],
  ["Its duplicates", (link) => link.kind === "duplicate" && link.direction === "from"],
  ["Related", (link) => link.kind === "related"],
];
const trail = [];

/** Fills the view: a question where the address names one, else the newest ones to begin with. */
export function showExplore(section, { id }) {
  const running = new AbortController();
  const place = h("div", { class: "place" });
  section.append(
    h(
      "div",
      { class: "row heading" },
      h("h1", { tabindex: "-1" }, "Browse the forum"),
      finder(place, running.signal),
    ),
    place,
  );
  const show = () => (id ? showQuestion(place, id, running.signal) : showNewest(place, running.signal));
  attempt(place, show, running.signal);
  return () => running.abort();
}

async function attempt(place, action, signal) {
  fill(place, waiting(2));
  try {
    await action();
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    fill(
      place,
      wrong(error, () => attempt(place, action, signal)),
    );
  }
}

function finder(place, signal) {
  const field = h("input", {
    class: "field",
    id: "find",
    type: "search",
    autocomplete: "off",
    placeholder: "An id, or words",
  });
  const find = async (event) => {
    event.preventDefault();
    const wanted = field.value.trim();
    if (wanted) attempt(place, () => findQuestion(place, wanted, signal), signal);
  };
  return h(
    "form",
    { class: "finder", role: "search", on: { submit: find } },
    h("label", { class: "unseen", for: "find" }, "Start from a question"),
    h("div", { class: "row" }, field, h("button", { class: "button main", type: "submit" }, "Find")),
  );
}

async function findQuestion(place, wanted, signal) {
  try {
    await fetchQuestion(wanted, signal);
    location.hash = exploreAddress(wanted);
    return;
  } catch (error) {
    if (error.status !== 404) throw error;
  }
  const { hits, least } = await similar({ title: wanted, k: LISTED }, signal);
  const listOf = (hits) => pickList(hits.map(({ question, answers }) => ({ ...question, answers })));
  announce(hits.length ? `${count(hits.length, "question")} found` : "No question found");
  if (hits.length) fill(place, h("h2", {}, `Similar to “${wanted}”`), foldedHits(hits, least, listOf));
  else
    fill(place, note("Nothing found.", `No question has the id “${wanted}”, and no question matches these words.`));
}

async function showNewest(place, signal) {
  const { questions, total } = await newest(LISTED, signal);
  if (!questions.length)
    return fill(place, note("The forum is empty.", "Index an archive or add a question to see it here."));
  const often = h("section", { class: "often", "aria-labelledby": "often", hidden: true });
  fill(
    place,
    h("h2", {}, "The newest by date", h("span", { class: "aside" }, ` of ${count(total, "question")}`)),
    pickList(questions),
    often,
  );
  return showOften(often, signal);
}

/** Questions that were asked in other words again, under the one to answer them by; without them the newest stay. */
async function showOften(section, signal) {
  const answer = await groups(SHOWN_GROUPS, signal).catch(() => null);
  if (signal.aborted || !answer?.groups.length) return;
  fill(
    section,
    h("h2", { id: "often" }, "Frequently asked"),
    h("ul", { class: "card picks" }, answer.groups.map(groupRow)),
  );
  section.hidden = false;
}

function groupRow({ canonical, size, kind, weakest, questions }) {
  const others = questions.filter(({ id }) => id !== canonical.id);
  return h(
    "li",
    {},
    pickLink(canonical),
    h("span", { class: "aside" }, [`${size} times`, count(canonical.answers, "answer"), KINDS[kind]].filter(Boolean).join(" · ")),
    h(
      "details",
      { class: "rest" },
      h("summary", {}, icon(PATHS.chevron), kind === "same question" ? "In other words" : "All of them"),
      h("ul", {}, others.map((question) => h("li", {}, pickLink(question)))),
      weakest ? h("div", { class: "weakest" }, "Least alike: ", weakestOf(weakest)) : null,
    ),
  );
}

const weakestOf = ({ question, candidate, likelihood }) => [
  h("q", {}, titleOf(question)),
  " and ",
  h("q", {}, titleOf(candidate)),
  likelihoodLine({ likelihood }),
];

const pickLink = (question) => h("a", { href: exploreAddress(question.id) }, titleOf(question));

function pickList(questions) {
  return h(
    "ul",
    { class: "card picks" },
    questions.map((question) =>
      h(
        "li",
        {},
        pickLink(question),
        h("span", { class: "aside" }, [date(question.created), count(question.answers, "answer")].filter(Boolean).join(" · ")),
      ),
    ),
  );
}

async function showQuestion(place, id, signal) {
  const [shown, near] = await Promise.all([fetchQuestion(id, signal), neighbours(id, NEIGHBOURS, signal)]);
  if (signal.aborted) return;
  remember(shown.question);
  document.title = `${titleOf(shown.question)} · askalike`;
  announce(`${titleOf(shown.question)}: ${count(near.hits.length, "neighbour")}`);
  fill(
    place,
    trailLine(id),
    h(
      "div",
      { class: "halves" },
      questionCard(shown),
      h("section", { "aria-labelledby": "near" }, h("h2", { id: "near" }, "Similar questions"), neighbourList(near)),
    ),
  );
}

function remember(question) {
  const at = trail.findIndex((step) => step.id === question.id);
  if (at >= 0) trail.length = at;
  trail.push({ id: question.id, title: titleOf(question) });
  if (trail.length > LONGEST_TRAIL) trail.shift();
}

function trailLine(id) {
  if (trail.length < 2) return null;
  return h(
    "nav",
    { class: "trail", "aria-label": "Visited questions" },
    h(
      "ol",
      {},
      trail.map((step) =>
        h("li", {}, h("a", { href: exploreAddress(step.id), "aria-current": step.id === id ? "page" : null }, step.title)),
      ),
    ),
  );
}

function questionCard({ question, html, answers, links }) {
  return h(
    "article",
    { class: "card question" },
    h("h2", {}, question.url ? titleLink(question, titleOf(question)) : titleOf(question)),
    aboutLine(question),
    bodyElement(html),
    linkGroups(links),
    answers.length ? h("h3", {}, count(answers.length, "answer")) : h("p", { class: "aside" }, "No answer yet."),
    answers.map(foldedAnswer),
  );
}

/** Links by what they say, each question once; of many, the first few and the rest folded. */
function linkGroups(links) {
  const known = new Set();
  const first = [...links].sort((link, other) => link.kind.localeCompare(other.kind)); // a duplicate says more than a relation
  const once = first.filter(({ id }) => !known.has(id) && known.add(id));
  return LINK_GROUPS.map(([name, belongs]) => {
    const rows = once
      .filter(belongs)
      .map((link) => h("li", {}, h("a", { href: exploreAddress(link.id) }, titleOf(link))));
    if (!rows.length) return null;
    const more = rows.splice(SHOWN_LINKS);
    const rest = more.length
      ? h(
          "details",
          { class: "rest" },
          h("summary", {}, icon(PATHS.chevron), `and ${more.length} more`),
          h("ul", {}, more),
        )
      : null;
    return h("div", { class: "links" }, h("h3", { class: "small" }, name), h("ul", {}, rows), rest);
  });
}

function foldedAnswer(answer, at) {
  return h(
    "details",
    { class: "folded", open: at === 0 },
    h("summary", {}, icon(PATHS.chevron), byLine(answer)),
    bodyElement(answer.html),
  );
}

function neighbourList({ hits, least }) {
  if (!hits.some((hit) => isLikely(hit, least)))
    return [note("No similar questions.", "Nothing like it was asked."), foldedHits(hits, least, neighbourRows)];
  return foldedHits(hits, least, neighbourRows);
}

function neighbourRows(hits) {
  return h(
    "ol",
    { class: "neighbours" },
    hits.map((hit) =>
      h(
        "li",
        {},
        h("span", { class: "badge", "aria-hidden": "true" }, hit.rank),
        h(
          "div",
          {},
          h(
            "a",
            { href: exploreAddress(hit.question.id) },
            markedRanges(titleOf(hit.question), hit.highlights.title),
          ),
          likelihoodLine(hit),
        ),
      ),
    ),
  );
}
