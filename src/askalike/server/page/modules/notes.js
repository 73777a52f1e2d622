// What a view says instead of results: nothing yet, nothing found, an error with what to do.

import { announce, h } from "./dom.js";
import { mayAskAgain } from "./keys.js";

/** A note with a heading and a sentence. */
export function note(heading, sentence, ...more) {
  return h("div", { class: "note" }, h("div", {}, h("strong", {}, heading), sentence), more);
}

/** What went wrong, with a button that tries again; a network that comes back tries by itself. */
export function wrong(error, again) {
  announce(`${error.message}. ${error.hint ?? ""}`);
  const label = error.kind === "key" ? "Enter a key" : "Try again";
  const retry = () => {
    mayAskAgain();
    again();
  };
  const box = h(
    "div",
    { class: "note wrong" },
    h("div", {}, h("strong", {}, `${error.message}.`), error.hint ?? ""),
    h("button", { class: "button", type: "button", on: { click: retry } }, label),
  );
  if (error.kind === "offline") {
    const back = () => box.isConnected && again();
    window.addEventListener("online", back, { once: true });
  }
  return box;
}

/** Grey bars where cards will be. */
export function waiting(cards) {
  return h(
    "div",
    { class: "waiting", "aria-hidden": "true" },
    Array.from({ length: cards }, () => h("div", { class: "card blank" }, h("i"), h("i"), h("i"))),
  );
}
