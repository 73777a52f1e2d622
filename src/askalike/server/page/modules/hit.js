// One similar question as a row that unfolds to its best answer, and to why it was found.

import { helped } from "./api.js";
import { bodyElement } from "./body.js";
import { fill, h, icon, PATHS } from "./dom.js";
import { isLikely, likelihoodLine } from "./likelihood.js";
import { webAddress } from "./links.js";
import { markedRanges, markWithin, pattern } from "./marks.js";
import { count, date, parts, titleOf } from "./words.js";

const SHOWN_WORDS = 7;
let rows = 0;

/** The address of a question within this page. */
export const exploreAddress = (id) => `#/explore/${encodeURIComponent(id)}`;

/**
 * A hit as a row that unfolds: how likely, its title with the shared words marked, whether it is answered. `opened` holds the
 * ids that are unfolded, so that they stay so when the list is drawn anew.
 */
export function hitRow(hit, opened) {
  const { question } = hit;
  const id = `hit-${(rows += 1)}`;
  const isOpen = opened.has(question.id);
  const panel = h("div", { class: "details", id, hidden: !isOpen });
  const toggle = h(
    "button",
    { class: "button quiet unfold", type: "button", "aria-expanded": String(isOpen), "aria-controls": id },
    h("span", { class: "unseen" }, hit.best_answer ? "Answer and more" : "More", unseenOf(hit)),
    icon(PATHS.chevron),
  );
  const set = (isShown) => {
    toggle.setAttribute("aria-expanded", String(isShown));
    panel.hidden = !isShown;
    if (isShown && !panel.firstChild) panel.append(...detailsOf(hit).filter(Boolean));
    if (isShown) opened.add(question.id);
    else opened.delete(question.id);
  };
  toggle.addEventListener("click", () => set(panel.hidden));
  if (isOpen) set(true);
  return h(
    "li",
    { class: "hit", "data-id": question.id },
    h(
      "div",
      { class: "line" },
      likelihoodLine(hit),
      h("h3", {}, titleLink(question, markedRanges(titleOf(question), hit.highlights.title))),
      answered(hit),
      toggle,
    ),
    panel,
  );
}

/** A list of the hits that reach the forum's threshold, and the others folded; `listOf` makes the list of some hits. */
export function foldedHits(hits, least, listOf) {
  const likely = hits.filter((hit) => isLikely(hit, least));
  const others = hits.filter((hit) => !isLikely(hit, least));
  return [
    likely.length ? listOf(likely) : null,
    others.length
      ? h(
          "details",
          { class: "rest" },
          h("summary", {}, icon(PATHS.chevron), count(others.length, "less likely question")),
          listOf(others),
        )
      : null,
  ];
}

function answered({ best_answer: answer, answers }) {
  if (!answer) return h("span", { class: "answered none" }, "no answer");
  const seal = answer.accepted ? [icon(PATHS.check), h("span", { class: "unseen" }, "accepted, ")] : null;
  return h("span", { class: `answered${answer.accepted ? " seal" : ""}` }, seal, count(answers, "answer"));
}

function detailsOf(hit) {
  return [
    aboutLine(hit.question, hit.via),
    hit.excerpt ? h("p", { class: "excerpt" }, markedRanges(hit.excerpt, hit.highlights.excerpt)) : null,
    hit.best_answer ? h("div", { class: "answer" }, answerNodes(hit)) : null,
    footOf(hit),
    whyPart(hit),
  ];
}

/** What somebody does with a hit: say that it helped, read it where the forum shows it, look at what is near it. */
function footOf(hit) {
  const said = h("span", { class: "aside", role: "status" });
  const button = h("button", { class: "button helped", type: "button" }, icon(PATHS.check), "This answered my question");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await helped(hit);
      fill(said, "Thank you.");
    } catch (error) {
      button.disabled = false;
      fill(said, `${error.message}. ${error.hint ?? ""}`);
    }
  });
  const address = webAddress(hit.question.url);
  const forum = address
    ? h("a", { class: "button quiet", href: address, target: "_blank", rel: "noopener" }, "In the forum", icon(PATHS.out))
    : null;
  const walk = h(
    "a",
    { class: "button quiet", href: exploreAddress(hit.question.id) },
    "All answers",
    unseenOf(hit),
    icon(PATHS.walk),
  );
  return h("div", { class: "row foot" }, button, said, forum, walk);
}

/** A title that leads to the forum, or to this page where the forum has named no address. */
export function titleLink(question, children) {
  const address = webAddress(question.url);
  if (!address) return h("a", { href: exploreAddress(question.id) }, children);
  return h(
    "a",
    { href: address, target: "_blank", rel: "noopener" },
    children,
    h("span", { class: "unseen" }, " (opens a new tab)"),
  );
}

/** When it was asked, its votes and tags. */
export function aboutLine(question, via = null) {
  const facts = [date(question.created)];
  if (question.score !== null && question.score !== undefined) facts.push(count(question.score, "vote"));
  const said = facts.filter(Boolean).join(" · ");
  if (!said && !via && !question.tags?.length) return null;
  return h(
    "p",
    { class: "about" },
    said && h("span", {}, said),
    via && h("span", { class: "via" }, "found through “", markedRanges(titleOf(via), via.highlights), "”"),
    (question.tags ?? []).map((tag) => h("span", { class: "tag" }, tag)),
  );
}

/** Why it was found, folded: words and the scores. */
function whyPart(hit) {
  const answered = distinctWords(hit.matched.filter((match) => match.field === "answer"));
  const matched = distinctWords(hit.matched.filter((match) => match.field !== "answer"));
  const rows = [
    matched.length ? reason("Matched", matched) : null,
    answered.length ? reason("Found in an answer", answered) : null,
    hit.matched.length ? null : reason("Matched", ["no word, but the meaning"]),
    hit.missing.length ? reason("Missing", hit.missing) : null,
  ];
  const scores = parts(hit.components);
  if (scores) rows.push(reason("Scores", [scores]));
  return h(
    "details",
    { class: "why" },
    h("summary", {}, icon(PATHS.chevron), "Why?", unseenOf(hit)),
    h("dl", {}, rows),
  );
}

function distinctWords(matches) {
  return [...new Set(matches.map((match) => match.word.toLowerCase()))];
}

function reason(name, words) {
  const more = words.length - SHOWN_WORDS;
  const shown = words.slice(0, SHOWN_WORDS).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return h("div", { class: name.toLowerCase().replaceAll(" ", "-") }, h("dt", {}, name), h("dd", {}, shown));
}

function unseenOf(hit) {
  return h("span", { class: "unseen" }, ` of “${titleOf(hit.question)}”`);
}

function answerNodes(hit) {
  const answer = hit.best_answer;
  return [byLine(answer), markWithin(bodyElement(answer.html), pattern(hit.matched.map((match) => match.word)))];
}

/** Who answered, when, with how many votes. */
export function byLine(answer) {
  const facts = [
    answer.author ? `by ${answer.author}` : "",
    date(answer.created),
    answer.score === null || answer.score === undefined ? "" : count(answer.score, "vote"),
  ].filter(Boolean);
  const seal = answer.accepted ? h("span", { class: "seal" }, icon(PATHS.check), "Accepted") : null;
  return h("p", { class: "about" }, seal, h("span", {}, facts.join(" · ") || (seal ? "" : "Answer")));
}
