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
 * asked at each letter typed, but when something is to be written, or after `mayAskAgain`. The dialogue stays, and says why,
 * until a key is taken or none is given: `refused` is why the key of this tab was (null where there is none), `again` asks
 * with the key that was given and returns why that one was refused, or null.
 */
export function keyFor(writes, refused, again) {
  if (hasDeclined && !writes) return Promise.resolve(false);
  asking ??= ask(writes, refused, again).then((isGiven) => {
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

function ask(writes, refused, again) {
  const dialogue = document.getElementById("key-dialogue");
  const before = storedKey();
  const field = keyField();
  const why = h("p", { class: "why-not", id: "key-refused", role: "alert" });
  const use = h("button", { class: "button main", type: "submit" }, "Use this key");
  const cancel = h("button", { class: "button", type: "button", on: { click: () => dialogue.close("") } }, "Cancel");
  const form = h("form", {}, words(writes), keyLabel(field), why, h("div", { class: "row end" }, cancel, use));
  const say = (error) => {
    if (!error) return;
    fill(why, h("strong", {}, `${error.message}.`), " ", error.hint);
    field.setAttribute("aria-invalid", "true");
    field.select();
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (use.disabled) return;
    use.disabled = true;
    store(field.value.trim());
    const error = await again().catch((wrong) => (wrong.name === "AbortError" ? null : wrong));
    use.disabled = false;
    if (!form.isConnected || !dialogue.open) return; // left meanwhile
    if (error) say(error);
    else dialogue.close("given");
  });
  fill(dialogue, form);
  return new Promise((resolve) => {
    const closed = () => {
      const isGiven = dialogue.returnValue === "given";
      if (!isGiven) store(before);
      resolve(isGiven);
    };
    dialogue.addEventListener("close", closed, { once: true });
    dialogue.returnValue = "";
    dialogue.showModal();
    say(refused);
    field.focus();
  });
}

function words(writes) {
  const about = writes
    ? "Judging pairs, and the log of who judged, need a key with write access."
    : "This service requires an API key.";
  return [
    h("h2", { id: "key-title" }, writes ? "A key with write access" : "API key required"),
    h("p", { id: "key-about", class: "aside" }, `${about} It stays in this tab and goes to this service only.`),
  ];
}

function keyField() {
  return h("input", {
    class: "field",
    id: "key",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    "aria-describedby": "key-about key-refused",
  });
}

function keyLabel(field) {
  return h("div", {}, h("label", { class: "label", for: "key" }, "Key"), field);
}
