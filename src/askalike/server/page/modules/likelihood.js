// How likely two questions ask the same: a word, a number and four small bars. Where the ranker says no likelihood, its
// scores are shown as they are.

import { h } from "./dom.js";
import { parts, percent } from "./words.js";

const LEVELS = { "almost certain": 4, likely: 3, possible: 2, unlikely: 1, unknown: 0 };
const SMALL = 0.1;
const NAMES = {
  "almost certain": "Almost certainly the same",
  likely: "Probably the same",
  possible: "Perhaps the same",
  unlikely: "Maybe related",
};
const LEAST_ALIKE = 0.015; // a title alone has 3 % where the same was asked in other words, one of another subject 0.3 %

const PER_CENT = "Probability that both ask the same";

/** Whether the best of some hits is so unlikely the same that nothing like it was asked; never by scores alone. */
export const isNothingAlike = (hits) =>
  hits.every(({ likelihood }) => likelihood.value !== null && likelihood.value < LEAST_ALIKE);

/** A line such as "▮▮▮▯ Probably the same 78 %". */
export function likelihoodLine({ likelihood, components = {}, score }) {
  const level = LEVELS[likelihood.word] ?? 0;
  if (!level) {
    const made = parts(components);
    return h(
      "p",
      { class: "likelihood level-0", title: "This ranker gives scores, not probabilities" },
      h("span", { class: "word" }, "Score ", scoreText(score)),
      made && h("span", { class: "number" }, made),
    );
  }
  return h(
    "p",
    { class: `likelihood level-${level}`, title: PER_CENT },
    h(
      "span",
      { class: "bars", "aria-hidden": "true" },
      [1, 2, 3, 4].map((one) => h("i", { class: one <= level ? "full" : "" })),
    ),
    h("span", { class: "word" }, NAMES[likelihood.word]),
    " ",
    h("span", { class: "number" }, likelihood.value < 0.01 ? "below 1 %" : percent(likelihood.value)),
  );
}

const scoreText = (score) => score.toFixed(score && Math.abs(score) < SMALL ? 4 : 2);
