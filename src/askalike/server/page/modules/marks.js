// Marks words within a text: `<mark>` around them, everything as text nodes.

import { h } from "./dom.js";

const MOST_WORDS = 120;

// As the service reads text: an ideograph or a Hiragana sign is a word of its own, and parts those beside it.
const IDEOGRAPH = "\\u3041-\\u309f\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3134f}";
const GOES_ON = `(?:(?![${IDEOGRAPH}])[\\p{L}\\p{N}])`;
const BEGINS = new RegExp(`^[${IDEOGRAPH}]`, "u");
const ENDS = new RegExp(`[${IDEOGRAPH}]$`, "u");

/** The pattern that finds these words whole, whatever their case; null where there are none. */
export function pattern(words) {
  const unique = [...new Set([...words].map((word) => word.toLowerCase()))].filter(Boolean).slice(0, MOST_WORDS);
  if (!unique.length) return null;
  unique.sort((word, other) => other.length - word.length);
  const whole = unique.map((word) => {
    const escaped = word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
    return `${BEGINS.test(word) ? "" : `(?<!${GOES_ON})`}${escaped}${ENDS.test(word) ? "" : `(?!${GOES_ON})`}`;
  });
  return new RegExp(whole.join("|"), "giu");
}

/** A text as nodes, with what the pattern finds in `<mark>`. */
export function marked(text, matching, attributes = {}) {
  if (!matching) return [document.createTextNode(text)];
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(matching)) {
    if (match.index > end) nodes.push(document.createTextNode(text.slice(end, match.index)));
    nodes.push(h("mark", attributes, match[0]));
    end = match.index + match[0].length;
  }
  if (end < text.length) nodes.push(document.createTextNode(text.slice(end)));
  return nodes;
}

/** Marks the words in all text below an element; code is left as it is. */
export function markWithin(element, matching) {
  if (!matching) return element;
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) if (!text.parentElement.closest("mark")) text.replaceWith(...marked(text.data, matching));
  return element;
}

/** A text as nodes, with the ranges that the service names in `<mark>`; they count code points. */
export function markedRanges(text, ranges) {
  if (!ranges?.length) return [document.createTextNode(text)];
  const points = Array.from(text);
  const nodes = [];
  let end = 0;
  for (const [from, to] of ranges) {
    if (from > end) nodes.push(document.createTextNode(points.slice(end, from).join("")));
    nodes.push(h("mark", {}, points.slice(from, to).join("")));
    end = to;
  }
  if (end < points.length) nodes.push(document.createTextNode(points.slice(end).join("")));
  return nodes;
}
