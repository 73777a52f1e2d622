// How likely an answer to one question answers the other: words, a number and four small bars. Where the ranker says no likelihood, its
// scores are shown as they are.

import { h } from "./dom.js";
import { parts, percent } from "./words.js";

const LEVELS = {
  "almost certainly the same": 4,
  "probably the same": 3,
  "perhaps the same": 2,
  "maybe related": 1,
  unknown: 0,
};
const SMALL = 0.1;
const PER_CENT = "The probability that an answer to it answers the question";

/** Whether a hit reaches the forum's threshold; scores that are no probabilities always do. */
export const isLikely = ({ likelihood }, least) => (least ?? null) === null || (likelihood.value ?? least) >= least;

/** A line such as "▮▮▮▯ Probably the same 78 %". */
export function likelihoodLine({ likelihood, components = {}, score }) {
  const level = LEVELS[likelihood.word] ?? 0;
  if (!level) {
    const number = parts(components);
    return h(
      "p",
      { class: "likelihood level-0", title: "This ranker gives scores, not probabilities" },
      h("span", { class: "word" }, "Score ", scoreText(score)),
      number && h("span", { class: "number" }, number),
    );
  }
  return h(
    "p",
    { class: `likelihood level-${level}`, title: PER_CENT },
    h(
      "span",
      { class: "bars", "aria-hidden": "true" },
      [1, 2, 3, 4].map((bar) => h("i", { class: bar <= level ? "full" : "" })),
    ),
    h("span", { class: "word" }, likelihood.word.charAt(0).toUpperCase() + likelihood.word.slice(1)),
    " ",
    h("span", { class: "number" }, likelihood.value < 0.01 ? "below 1 %" : percent(likelihood.value)),
  );
}

const scoreText = (score) => score.toFixed(score && Math.abs(score) < SMALL ? 4 : 2);
