// Single keys as shortcuts: not while one writes in a field, not with a modifier, and only as long as they are switched on.

import { h } from "./dom.js";

const NAME = "askalike.shortcuts";
let isOn = read();

function read() {
  try {
    return localStorage.getItem(NAME) !== "off";
  } catch {
    return true;
  }
}

/** A box that switches shortcuts off, as speech input may need. */
export function keysSwitch() {
  const box = h("input", { type: "checkbox" });
  box.checked = isOn;
  box.addEventListener("change", () => {
    isOn = box.checked;
    try {
      localStorage.setItem(NAME, isOn ? "on" : "off");
    } catch {
      // Storage is forbidden: the choice holds until the page is closed.
    }
  });
  return h(
    "label",
    { class: "switch" },
    box,
    "Single-key shortcuts: ",
    ["y", "n", "j", "k", "u"].map((key) => [h("kbd", {}, key), " "]),
    h("kbd", {}, "→"),
    " ",
    h("kbd", {}, "←"),
  );
}

/** Listens until the function that comes back is called; `actions` are named by `event.key`. */
export function listenToKeys(section, actions) {
  const pressed = (event) => {
    if (!isOn || event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (
      event.target.closest?.("input:not([type=checkbox]), textarea, select, dialog, [contenteditable]") ||
      !section.isConnected
    )
      return;
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
