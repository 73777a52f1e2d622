// Bodies of posts as elements. A post is untrusted: what it says in HTML is parsed in a document that runs nothing and
// loads nothing, then walked, and only listed elements are made anew, without any attribute but a link's checked address.

import { h } from "./dom.js";
import { link } from "./links.js";
import { markdownNodes } from "./markdown.js";

const KEPT = new Set(
  "P BR PRE CODE KBD SAMP EM I STRONG B U S DEL INS SUB SUP UL OL LI BLOCKQUOTE TABLE THEAD TBODY TR TH TD HR DL DT DD".split(" "),
);
const HEADINGS = new Set(["H1", "H2", "H3", "H4", "H5", "H6"]);
const DROPPED = new Set(
  "SCRIPT STYLE TEMPLATE IFRAME OBJECT EMBED NOSCRIPT SVG MATH HEAD TITLE FORM BUTTON INPUT SELECT TEXTAREA VIDEO AUDIO CANVAS".split(" "),
);
const DEEPEST = 30;
const MOST_NODES = 4000;

/** A body in its markup ("html", "markdown" or "plain") as an element. */
export function bodyElement(text, markup) {
  const body = h("div", { class: "post" });
  if (markup === "html") body.append(...htmlNodes(text));
  else if (markup === "markdown") body.append(...markdownNodes(text));
  else body.append(...plainNodes(text));
  return body;
}

function plainNodes(text) {
  const paragraphs = text.split(/\n\s*\n/).filter((paragraph) => paragraph.trim());
  return paragraphs.map((paragraph) => h("p", { class: "as-written" }, paragraph.trim()));
}

function htmlNodes(text) {
  const parsed = new DOMParser().parseFromString(text, "text/html");
  return copies(parsed.body, 0, { left: MOST_NODES });
}

function copies(parent, depth, budget) {
  const made = [];
  for (const child of parent.childNodes) {
    if (budget.left-- <= 0) break;
    if (child.nodeType === Node.TEXT_NODE) made.push(document.createTextNode(child.data));
    else if (child.nodeType === Node.ELEMENT_NODE) made.push(...copy(child, depth, budget));
  }
  return made;
}

function copy(element, depth, budget) {
  const name = element.nodeName.toUpperCase();
  if (DROPPED.has(name)) return [];
  if (name === "IMG") return [h("span", { class: "picture" }, `[picture${altOf(element)}]`)];
  if (depth >= DEEPEST) return [document.createTextNode(element.textContent)];
  const inside = copies(element, depth + 1, budget);
  if (name === "A") return [link(element.getAttribute("href"), inside)];
  if (HEADINGS.has(name)) return [h("p", {}, h("strong", {}, inside))];
  return KEPT.has(name) ? [h(name.toLowerCase(), {}, inside)] : inside;
}

function altOf(element) {
  const alt = (element.getAttribute("alt") ?? "").trim();
  return alt ? `: ${alt}` : "";
}

/** A body as one line of text, for excerpts. */
export function plainText(text, markup) {
  return bodyElement(text, markup).textContent.replace(/\s+/g, " ").trim();
}
