// Two questions side by side: first as the list tells them, then whole, with the words in which they differ.

import { question as fetchQuestion } from "./api.js";
import { bodyElement } from "./body.js";
import { differences } from "./differences.js";
import { fill, h, icon, PATHS } from "./dom.js";
import { aboutLine, byLine, exploreAddress, titleLink } from "./hit.js";
import { count, titleOf } from "./words.js";

/** What was fetched of questions, once each. */
export class Texts {
  constructor(signal) {
    this.signal = signal;
    this.questions = new Map();
  }

  of(id) {
    if (!this.questions.has(id)) {
      const question = fetchQuestion(id, this.signal);
      question.catch(() => this.questions.delete(id)); // asked again when it is needed again
      this.questions.set(id, question);
    }
    return this.questions.get(id);
  }
}

/** The name of a pair. */
export const nameOf = ({ question, candidate }) => JSON.stringify([question.id, candidate.id]);

/** Both questions of a pair; their whole texts follow when they are there. */
export function pairElement(pair, texts) {
  const sides = [pair.question, pair.candidate].map((brief) => side(brief, pair));
  compare(sides, texts);
  return h(
    "div",
    { class: "pair", id: "pair", "data-pair": nameOf(pair) },
    sides.map(({ element }) => element),
  );
}

function side(brief, pair) {
  const title = h("h2", {}, titleLink(brief, titleOf(brief)));
  const text = h("div", { class: "post" }, h("p", {}, brief.excerpt));
  const walk = h(
    "a",
    { class: "button quiet", href: exploreAddress(brief.id) },
    "Neighbours",
    h("span", { class: "unseen" }, ` of “${titleOf(brief)}”`),
    icon(PATHS.walk),
  );
  const element = h(
    "article",
    { class: "card question" },
    h("p", { class: "which" }, brief === pair.question ? "Asked later" : "Asked earlier"),
    title,
    aboutLine(brief),
    text,
    h("p", { class: "row foot" }, h("span", { class: "aside" }, count(brief.answers, "answer")), walk),
  );
  return { element, title, text, id: brief.id };
}

async function compare(sides, texts) {
  let questions = [];
  try {
    questions = await Promise.all(sides.map(({ id }) => texts.of(id)));
    sides.forEach(({ text }, at) => fill(text, bodyElement(questions[at].html)));
  } catch (error) {
    if (error.name === "AbortError") return; // otherwise the excerpts are there to be judged by
  }
  differences(sides); // of the questions: what their answers share is no reason
  questions.forEach(({ answers: [best] }, at) => best && sides[at].text.append(folded(best)));
}

function folded(best) {
  return h("details", { class: "folded" }, h("summary", {}, icon(PATHS.chevron), byLine(best)), bodyElement(best.html));
}
