// Where two questions differ, word by word: the longest common run of words of both texts is left alone, and what one side
// says beside it is marked. Texts that share too little have no common run worth the name: their titles alone are compared.

import { h } from "./dom.js";

const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}'’]*(?:[.-][\p{L}\p{N}]+)*/gu;
const MOST_WORDS = 600;
const LEAST_SHARED = 0.4;

/** Marks in the titles and texts of two sides (`{title, text}` elements) the words in which they differ. */
export function differences(sides) {
  mark(sides.map(({ title }) => placesOf(title.querySelector("a")?.firstChild ?? title)), 0);
  mark(sides.map(({ text }) => placesOf(text)), LEAST_SHARED);
}

function mark([first, second], least) {
  if (!first.length || !second.length) return;
  const shared = common(first.map(wordOf), second.map(wordOf));
  if (shared.length < least * Math.min(first.length, second.length)) return;
  for (const [places, at] of [
    [first, 0],
    [second, 1],
  ]) {
    const kept = new Set(shared.map((pair) => pair[at]));
    wrap(places.filter((_, index) => !kept.has(index)));
  }
}

const wordOf = ({ word }) => word;

/** The words below a node, each with where it stands. */
function placesOf(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const places = [];
  for (let node = walker.currentNode; node && places.length < MOST_WORDS; node = walker.nextNode()) {
    if (node.nodeType !== Node.TEXT_NODE) continue;
    for (const { 0: word, index } of node.data.matchAll(WORD))
      places.push({ node, start: index, end: index + word.length, word: word.toLowerCase() });
  }
  return places.slice(0, MOST_WORDS);
}

/** The places of a longest common subsequence: [index in the first, index in the second], ascending. */
export function common(first, second) {
  const width = second.length + 1;
  const longest = new Uint16Array((first.length + 1) * width);
  for (let own = first.length - 1; own >= 0; own -= 1)
    for (let other = second.length - 1; other >= 0; other -= 1)
      longest[own * width + other] =
        first[own] === second[other]
          ? longest[(own + 1) * width + other + 1] + 1
          : Math.max(longest[(own + 1) * width + other], longest[own * width + other + 1]);
  const places = [];
  for (let own = 0, other = 0; own < first.length && other < second.length; ) {
    if (first[own] === second[other]) places.push([own++, other++]);
    else if (longest[(own + 1) * width + other] >= longest[own * width + other + 1]) own += 1;
    else other += 1;
  }
  return places;
}

/** Puts words into `<mark>`, neighbours of one text in one; from the last to the first, so that places stay right. */
function wrap(places) {
  for (let last = places.length - 1; last >= 0; ) {
    const { node, end } = places[last];
    let first = last;
    while (first && isNextTo(places[first - 1], places[first])) first -= 1;
    const tail = node.splitText(places[first].start);
    tail.splitText(end - places[first].start);
    tail.replaceWith(h("mark", { class: "differs" }, tail.data));
    last = first - 1;
  }
}

const isNextTo = (word, other) => word.node === other.node && /^\s+$/.test(word.node.data.slice(word.end, other.start));
