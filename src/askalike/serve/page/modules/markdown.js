// The Markdown that forums write, as elements: paragraphs, lists, quotes, code, emphasis, links. Each piece of a text becomes
// a text node or an element made here; HTML inside Markdown stays the characters that were written.

import { h } from "./dom.js";
import { link } from "./links.js";

const FENCE = /^\s*(```+|~~~+)/;
const BULLET = /^\s{0,3}[-*+]\s+/;
const NUMBER = /^\s{0,3}\d{1,3}[.)]\s+/;
const QUOTE = /^\s{0,3}>\s?/;
const HEADING = /^\s{0,3}#{1,6}\s+/;
const INDENTED = /^(?: {4}|\t)/;
const DEEPEST_QUOTE = 4;

// Each alternative ends at a character that it may not hold itself, so that a text is read in time that grows with its length.
const INLINE =
  /(`{1,2})([^`\n]+?)\1|!\[([^\]\n]{0,200})\]\([^()\s]{1,2000}\)|\[([^\][\n]{1,300})\]\(([^()\s]{1,2000})\)|<(https?:\/\/[^<>\s]{1,2000})>|\*\*([^*\n]{1,500})\*\*|(?<![\p{L}\p{N}*])\*([^*\s][^*\n]{0,300})\*|(?<![\p{L}\p{N}_])_([^_\s][^_\n]{0,300})_(?![\p{L}\p{N}])|(https?:\/\/[^\s<>()"']{1,2000}[^\s<>()"'.,:;!?])/gu;

/** A Markdown text as nodes. */
export function markdownNodes(text, depth = 0) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const [node, next] = block(lines, at, depth);
    if (node) made.push(node);
    at = next;
  }
  return made;
}

function block(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  const fence = line.match(FENCE);
  if (fence) return fenced(lines, at, fence[1]);
  if (INDENTED.test(line)) {
    const end = stretch(lines, at, (one) => INDENTED.test(one) || !one.trim());
    return [code(lines.slice(at, end).map((one) => one.replace(INDENTED, ""))), end];
  }
  if (QUOTE.test(line) && depth < DEEPEST_QUOTE) {
    const end = stretch(lines, at, (one) => QUOTE.test(one));
    const inside = lines.slice(at, end).map((one) => one.replace(QUOTE, ""));
    return [h("blockquote", {}, markdownNodes(inside.join("\n"), depth + 1)), end];
  }
  if (BULLET.test(line)) return list(lines, at, "ul", BULLET);
  if (NUMBER.test(line)) return list(lines, at, "ol", NUMBER);
  if (HEADING.test(line)) return [h("p", {}, h("strong", {}, inline(line.replace(HEADING, "")))), at + 1];
  const end = Math.max(at + 1, stretch(lines, at, (one) => one.trim() && !startsBlock(one)));
  return [h("p", {}, inline(lines.slice(at, end).join("\n"))), end];
}

function startsBlock(line) {
  return [FENCE, BULLET, NUMBER, QUOTE, HEADING].some((start) => start.test(line));
}

function stretch(lines, at, belongs) {
  let end = at;
  while (end < lines.length && belongs(lines[end])) end += 1;
  return end;
}

function fenced(lines, at, mark) {
  const end = stretch(lines, at + 1, (one) => !one.trim().startsWith(mark));
  return [code(lines.slice(at + 1, end)), end + 1];
}

function code(lines) {
  return h("pre", { tabindex: "0" }, h("code", {}, lines.join("\n").replace(/\n+$/, "")));
}

function list(lines, at, name, start) {
  const items = [];
  let next = at;
  while (next < lines.length && start.test(lines[next])) {
    const end = stretch(lines, next + 1, (one) => /^\s+\S/.test(one) && !start.test(one));
    const words = lines.slice(next, end).map((one) => one.replace(start, "").trim());
    items.push(h("li", {}, inline(words.join(" "))));
    next = end;
  }
  return [h(name, {}, items), next];
}

/** Emphasis, code and links of one stretch of prose. */
function inline(text) {
  const made = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > end) made.push(text.slice(end, found.index));
    made.push(piece(found));
    end = found.index + found[0].length;
  }
  made.push(text.slice(end));
  return made;
}

function piece([whole, , inCode, picture, label, target, address, strong, starred, underlined, bare]) {
  if (inCode !== undefined) return h("code", {}, inCode);
  if (picture !== undefined) return h("span", { class: "picture" }, picture ? `[picture: ${picture}]` : "[picture]");
  if (label !== undefined) return link(target, label);
  if (address ?? bare) return link(address ?? bare, address ?? bare);
  if (strong !== undefined) return h("strong", {}, strong);
  return starred ?? underlined ? h("em", {}, starred ?? underlined) : whole;
}
