// A post as elements. The service sends HTML that it has made safe; it is not trusted all the same: it is parsed in a
// document that runs nothing and loads nothing, then walked, and only listed elements are made anew, without any attribute
// but a link's checked address.

import { h } from "./dom.js";
import { link } from "./links.js";
import { foldedWhereLong } from "./long.js";

const KEPT = new Set(
  "P BR PRE CODE KBD SAMP EM I STRONG B S DEL INS SUB SUP UL OL LI BLOCKQUOTE TABLE THEAD TBODY TR TH TD HR DL DT DD".split(
    " ",
  ),
);
const SCROLLED = new Set(["PRE", "TABLE"]);
const HEADINGS = new Set(["H1", "H2", "H3", "H4", "H5", "H6"]);
const DROPPED = new Set(
  "SCRIPT STYLE TEMPLATE IFRAME OBJECT EMBED NOSCRIPT SVG MATH TITLE FORM BUTTON INPUT SELECT TEXTAREA VIDEO AUDIO IMG".split(
    " ",
  ),
);
const DEEPEST = 30;
const MOST_NODES = 5000;

/** A post's HTML as an element, folded where it is long. */
export function bodyElement(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return foldedWhereLong(h("div", { class: "post" }, copies(parsed.body, 0, { left: MOST_NODES })));
}

function copies(parent, depth, budget) {
  const nodes = [];
  for (const child of parent.childNodes) {
    if (budget.left-- <= 0) break;
    if (child.nodeType === Node.TEXT_NODE) nodes.push(document.createTextNode(child.data));
    else if (child.nodeType === Node.ELEMENT_NODE) nodes.push(...copy(child, depth, budget));
  }
  return nodes;
}

function copy(element, depth, budget) {
  const name = element.nodeName.toUpperCase();
  if (DROPPED.has(name)) return [];
  if (depth >= DEEPEST) return [document.createTextNode(element.textContent)];
  const inside = copies(element, depth + 1, budget);
  if (name === "A") return [link(element.getAttribute("href"), inside)];
  if (HEADINGS.has(name)) return [h("p", {}, h("strong", {}, inside))];
  if (!KEPT.has(name)) return inside;
  return [h(name.toLowerCase(), { tabindex: SCROLLED.has(name) ? "0" : null }, inside)];
}
