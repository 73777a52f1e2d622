// What two questions share and where they differ: shared words are marked in both, words of one title alone are underlined.

import { marked, markWithin, pattern, wordsOf } from "./marks.js";

const SHORTEST = 3;
const COMMON = new Set(
  (
    "a about after all also am an and any are as at be because been but by can could did do does for from get had has have how i if in " +
    "into is it its just like me my need no not of on one only or other our out so some than that the their them then there these " +
    "they this to too up use using was we were what when where which while who why will with would you your every each want don't doesn't i'm it's can't i've"
  ).split(" "),
);

/** Marks the informative words that two sides (`{title, text}` elements) share, and underlines what only one title says. */
export function differences(sides) {
  const titles = sides.map((side) => telling(side.title.querySelector("a").firstChild.textContent));
  const all = sides.map((side) => new Set([...telling(side.title.textContent), ...telling(side.text.textContent)]));
  const shared = pattern([...all[0]].filter((word) => all[1].has(word)));
  sides.forEach((side, at) => {
    const alone = pattern([...titles[at]].filter((word) => !all[1 - at].has(word)));
    const link = side.title.querySelector("a");
    const said = link.firstChild;
    said.replaceWith(...marked(said.textContent, alone, { class: "alone" }));
    markWithin(link, shared);
    markWithin(side.text, shared);
  });
}

function telling(text) {
  return new Set([...wordsOf(text)].filter((word) => word.length >= SHORTEST && !COMMON.has(word)));
}
