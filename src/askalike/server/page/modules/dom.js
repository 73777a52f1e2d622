// Builds elements. Every string becomes a text node: nothing that the service sends is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (`on: {click}`) and children (nodes, strings, arrays; empty ones are left out). */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Puts these children in place of all that an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/** A small picture from a path on a 24 × 24 grid, drawn in the colour of the text; unseen by screen readers. */
export function icon(path) {
  return s(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    s("path", { d: path }),
  );
}

export const PATHS = {
  chevron: "M6 9l6 6 6-6",
  check: "M5 12.5l4.5 4.5L19 7.5",
  out: "M14 5h5v5M19 5l-8 8M17 14v5H5V7h5",
  walk: "M5 12h14M13 6l6 6-6 6",
  undo: "M9 7L4 12l5 5M4 12h10a6 6 0 0 1 0 12",
  sun: "M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8M12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4",
  moon: "M20 14.5A8.5 8.5 0 1 1 9.5 4a6.8 6.8 0 0 0 10.5 10.5z",
  half: "M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18M12 3v18M12 7h4.5M12 12h8.5M12 17h5",
};

/** Says a sentence to screen readers without moving the focus. */
export function announce(sentence) {
  const region = document.getElementById("announcer");
  if (region.textContent !== sentence) region.textContent = sentence;
}
