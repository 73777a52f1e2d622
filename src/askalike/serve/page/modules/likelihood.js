// How likely two questions ask the same: a word, a number and four small bars. Where the ranker says no likelihood, its
// scores are shown as they are.

import { h } from "./dom.js";
import { parts, percent } from "./words.js";

const LEVELS = { "almost certain": 4, likely: 3, possible: 2, unlikely: 1, unknown: 0 };
const SMALL = 0.1;
const NAMES = {
  "almost certain": "Almost certainly the same",
  likely: "Likely the same",
  possible: "Possibly the same",
  unlikely: "Unlikely the same",
};

/** A line such as "▮▮▮▯ Likely the same 78 %". */
export function likelihoodLine({ likelihood, components = {}, score }) {
  const level = LEVELS[likelihood.word] ?? 0;
  if (!level) {
    const made = parts(components);
    return h(
      "p",
      { class: "likelihood level-0", title: "This ranker gives scores, not a likelihood" },
      h("span", { class: "word" }, "Score ", score.toFixed(score < SMALL ? 4 : 2)),
      made && h("span", { class: "number" }, made),
    );
  }
  return h(
    "p",
    { class: `likelihood level-${level}`, title: parts(components) },
    h(
      "span",
      { class: "bars", "aria-hidden": "true" },
      [1, 2, 3, 4].map((one) => h("i", { class: one <= level ? "full" : "" })),
    ),
    h("span", { class: "word" }, NAMES[likelihood.word]),
    " ",
    h("span", { class: "number" }, percent(likelihood.value)),
  );
}

/** In [0, 1]: how near, for pictures. Where there is no likelihood, the score stands in, as a share of the best if need be. */
export function nearness({ likelihood, score }, best) {
  const isShare = best > 1 || best < SMALL;
  const value = likelihood.value ?? (isShare ? score / best : score);
  return Math.min(1, Math.max(0, value)) || 0;
}
