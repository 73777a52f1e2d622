// One similar question as a card: how likely, its title with the shared words marked, why it was found, its best answer.

import { bodyElement } from "./body.js";
import { h, icon, PATHS } from "./dom.js";
import { likelihoodLine } from "./likelihood.js";
import { webAddress } from "./links.js";
import { markedRanges, markWithin, pattern } from "./marks.js";
import { count, date, titleOf } from "./words.js";

const SHOWN_WORDS = 7;
const READ_MOST = 3;
const READ_AT_LEAST = 0.5;
let cards = 0;

/** The address of a question within this page. */
export const exploreAddress = (id) => `#/explore/${encodeURIComponent(id)}`;

/** A hit as a list item. `opened` holds the ids whose answers are unfolded, so that they stay so when the list is drawn anew. */
export function hitCard(hit, opened) {
  const { question } = hit;
  return h(
    "li",
    { class: "card hit", "data-id": question.id },
    likelihoodLine(hit),
    h("h3", {}, titleLink(question, markedRanges(titleOf(question), hit.highlights.title))),
    aboutLine(question, hit.via),
    hit.excerpt ? h("p", { class: "excerpt" }, markedRanges(hit.excerpt, hit.highlights.excerpt)) : null,
    whyLine(hit),
    answerPart(hit, opened),
  );
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
  if (via) facts.push(`found through its duplicate “${titleOf(via)}”`);
  const said = facts.filter(Boolean).join(" · ");
  if (!said && !question.tags?.length) return null;
  return h(
    "p",
    { class: "about" },
    said && h("span", {}, said),
    (question.tags ?? []).map((tag) => h("span", { class: "tag" }, tag)),
  );
}

function whyLine(hit) {
  const matched = [...new Set(hit.matched.map((one) => one.word.toLowerCase()))];
  const standIns = (hit.attended?.matches ?? []).filter((one) => one.missing && one.match).slice(0, READ_MOST);
  const read = strongest(hit.attended?.title ?? []);
  const brought = (hit.attended?.effects ?? [])
    .filter((one) => one.effect > 0)
    .sort((one, other) => other.effect - one.effect)
    .slice(0, READ_MOST);
  const rows = [
    matched.length
      ? reason("Matched", matched.slice(0, SHOWN_WORDS), matched.length - SHOWN_WORDS)
      : reason("Matched", ["no word, but the meaning"], 0),
    hit.missing.length ? reason("Missing", hit.missing, 0) : null,
    hit.components.judged_different ? reason("Less likely", ["people often judged it different from others"], 0) : null,
    standIns.length
      ? reason(
          "Stands in",
          standIns.map((one) => `${one.word} → ${one.match}`),
          0,
        )
      : null,
    read.length ? reason("Read most", read, 0) : null,
    brought.length
      ? reason(
          "Brought most",
          brought.map((one) => `${one.word} ${one.effect.toFixed(2)}`),
          0,
        )
      : null,
  ];
  return h("dl", { class: "why" }, rows);
}

function reason(name, words, more) {
  const shown = words.join(", ") + (more > 0 ? ` and ${more} more` : "");
  return h("div", { class: name.toLowerCase().replace(" ", "-") }, h("dt", {}, name), h("dd", {}, shown));
}

/** The words that the encoder takes most of. */
export function strongest(weighed) {
  const words = weighed.filter((one) => one.weight >= READ_AT_LEAST).sort((one, other) => other.weight - one.weight);
  return [...new Set(words.map((one) => one.word.toLowerCase()))].slice(0, READ_MOST);
}

function answerPart(hit, opened) {
  const walk = h(
    "a",
    { class: "button quiet", href: exploreAddress(hit.question.id) },
    "Neighbours",
    unseenOf(hit),
    icon(PATHS.walk),
  );
  const answer = hit.best_answer;
  if (!answer) return h("div", { class: "row foot" }, h("span", { class: "aside" }, "No answer yet"), walk);
  const id = `answer-${(cards += 1)}`;
  const isOpen = opened.has(hit.question.id);
  const panel = h("div", { class: "answer", id, hidden: !isOpen });
  const toggle = h(
    "button",
    { class: "button quiet unfold", type: "button", "aria-expanded": String(isOpen), "aria-controls": id },
    icon(PATHS.chevron),
    answer.accepted ? "Accepted answer" : "Best answer",
    unseenOf(hit),
  );
  const set = (isShown) => {
    toggle.setAttribute("aria-expanded", String(isShown));
    panel.hidden = !isShown;
    if (isShown && !panel.firstChild) panel.append(...answerNodes(hit));
    if (isShown) opened.add(hit.question.id);
    else opened.delete(hit.question.id);
  };
  toggle.addEventListener("click", () => set(panel.hidden));
  if (isOpen) set(true);
  const more = hit.answers > 1 ? h("span", { class: "aside" }, `of ${count(hit.answers, "answer")}`) : null;
  return [h("div", { class: "row foot" }, toggle, more, walk), panel];
}

function unseenOf(hit) {
  return h("span", { class: "unseen" }, ` of “${titleOf(hit.question)}”`);
}

function answerNodes(hit) {
  const answer = hit.best_answer;
  return [byLine(answer), markWithin(bodyElement(answer.html), pattern(hit.matched.map((one) => one.word)))];
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
