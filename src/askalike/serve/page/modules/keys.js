// The key that the service asks for: kept for this tab only, asked for in a dialogue when a call is refused without it.

import { fill, h } from "./dom.js";

const NAME = "askalike.key";
let unstored = "";
let asking = null;
let hasDeclined = false;

/** The key of this tab, or "". */
export function storedKey() {
  try {
    return sessionStorage.getItem(NAME) ?? "";
  } catch {
    return unstored;
  }
}

function store(key) {
  unstored = key;
  try {
    if (key) sessionStorage.setItem(NAME, key);
    else sessionStorage.removeItem(NAME);
  } catch {
    // Storage is forbidden: the key lives as long as the page.
  }
}

/**
 * Asks for a key; true when one was given. Calls that wait for the same key share one dialogue. Who has declined once is not
 * asked at each letter typed, but when something is to be written, or after `mayAskAgain`.
 */
export function keyFor(writes, hadKey = false) {
  if (hasDeclined && !writes) return Promise.resolve(false);
  asking ??= ask(writes, hadKey).then((isGiven) => {
    asking = null;
    hasDeclined = !isGiven;
    return isGiven;
  });
  return asking;
}

/** The next call that lacks a key asks for one again. */
export function mayAskAgain() {
  hasDeclined = false;
}

function ask(writes, hadKey) {
  const dialogue = document.getElementById("key-dialogue");
  const field = h("input", {
    class: "field",
    id: "key",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    "aria-describedby": "key-about",
  });
  const about = writes
    ? "Judging pairs changes the forum's feedback, so it needs a key that may write."
    : "This service answers only with a key.";
  const form = h(
    "form",
    {},
    h(
      "h2",
      { id: "key-title" },
      hadKey ? "This key may not do that" : writes ? "A key that may write" : "A key, please",
    ),
    h("p", { id: "key-about", class: "aside" }, `${about} It stays in this tab and goes to this service only.`),
    h("div", {}, h("label", { class: "label", for: "key" }, "Key"), field),
    h(
      "div",
      { class: "row end" },
      h("button", { class: "button", type: "button", on: { click: () => dialogue.close("") } }, "Cancel"),
      h("button", { class: "button main", type: "submit" }, "Use this key"),
    ),
  );
  fill(dialogue, form);
  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      store(field.value.trim());
      dialogue.close("given");
    });
    dialogue.addEventListener("close", () => resolve(dialogue.returnValue === "given"), { once: true });
    dialogue.returnValue = "";
    dialogue.showModal();
    field.focus();
  });
}
