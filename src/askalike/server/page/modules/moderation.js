// What moderators share in Review: which queue is shown, who moderates, and the log.

import { moderationLog, undo } from "./api.js";
import { announce, fill, h, icon, PATHS } from "./dom.js";
import { wrong } from "./notes.js";
import { minute } from "./words.js";

const NAME = "askalike.moderator";
const LINK = "askalike.link";
const PROMISES = { "": "All likely pairs", "precision:0.8": "8 of 10 the same", "precision:0.9": "9 of 10 the same", "precision:0.95": "19 of 20 the same" };
const KINDS = { duplicate: "the same", different: "different", undone: "undid" };
let unstored = {};

function kept(name) {
  try {
    return localStorage.getItem(name) ?? unstored[name] ?? "";
  } catch {
    return unstored[name] ?? "";
  }
}

function keep(name, value) {
  unstored = { ...unstored, [name]: value };
  try {
    localStorage.setItem(name, value);
  } catch {
    // Storage is forbidden: it holds until the page is closed.
  }
}

/** Who moderates, where the key does not say it. */
export const moderator = () => kept(NAME);

/** Whether a duplicate is linked to its original. */
export const isLinking = () => kept(LINK) !== "off";

/** The fields that choose a queue: category, promised precision; and who moderates, and whether duplicates are linked. */
export function queueFields(tag, minimum) {
  const category = h("input", { class: "field", id: "category", value: tag, list: "categories", autocomplete: "off", spellcheck: "false" });
  const promise = h(
    "select",
    { class: "field", id: "promise" },
    Object.entries(PROMISES).map(([value, label]) => h("option", { value, selected: value === minimum }, label)),
  );
  if (minimum && !Object.hasOwn(PROMISES, minimum)) promise.append(h("option", { value: minimum, selected: true }, minimum));
  const who = h("input", { class: "field", id: "moderator", value: moderator(), maxlength: 200, autocomplete: "nickname" });
  const link = h("input", { type: "checkbox", id: "link" });
  link.checked = isLinking();
  const go = () => {
    const query = new URLSearchParams();
    if (category.value.trim()) query.set("tag", category.value.trim());
    if (promise.value) query.set("minimum", promise.value);
    location.hash = `#/review${query.size ? `?${query}` : ""}`;
  };
  for (const field of [category, promise]) field.addEventListener("change", go);
  who.addEventListener("change", () => keep(NAME, who.value.trim()));
  link.addEventListener("change", () => keep(LINK, link.checked ? "on" : "off"));
  const labelled = (label, field) => h("label", { class: "chosen", for: field.id }, h("span", {}, label), field);
  return h(
    "div",
    { class: "row queue", role: "group", "aria-label": "Queue" },
    labelled("Category", category),
    h("datalist", { id: "categories" }),
    labelled("Promised precision", promise),
    h("label", { class: "chosen who", for: "moderator" }, h("span", {}, "Your name"), who),
    h("label", { class: "switch" }, link, "Link duplicates to the earlier question"),
  );
}

/** Suggests the categories of pairs that are there. */
export function suggestCategories(pairs) {
  const tags = new Set(pairs.flatMap(({ question, candidate }) => [...question.tags, ...candidate.tags]));
  const list = document.getElementById("categories");
  if (list) fill(list, [...tags].sort().map((value) => h("option", { value })));
}

/** The log: asked for when it is opened. `undone` is told the number of a decision that was taken back. */
export function logElement(you, signal, undone) {
  const list = h("ol", { class: "log" });
  const more = h("button", { class: "button quiet", type: "button", hidden: true, on: { click: () => read(false) } }, "Earlier entries");
  const said = h("div", {});
  let next = 0;
  const read = async (isFresh) => {
    try {
      const page = await moderationLog(isFresh ? 0 : next, signal);
      if (isFresh) fill(list);
      next = page.next ?? 0;
      list.append(...page.entries.map((decision) => entry(decision, takeBack)));
      more.hidden = !page.next;
      fill(said, list.children.length ? null : "Nothing was decided yet.");
    } catch (error) {
      if (error.name !== "AbortError") fill(said, wrong(error, () => read(isFresh)));
    }
  };
  const takeBack = async (number) => {
    try {
      await undo(number, you());
      undone(number);
      await read(true);
      announce("Undone.");
      summary.focus();
    } catch (error) {
      fill(said, wrong(error, () => takeBack(number)));
    }
  };
  const summary = h("summary", {}, icon(PATHS.chevron), "Log");
  const box = h("details", { class: "folded history" }, summary, list, more, said);
  box.addEventListener("toggle", () => box.open && read(true));
  box.fresh = () => box.open && read(true);
  return box;
}

function entry(decision, takeBack) {
  const stands = (decision.kind === "duplicate" || decision.kind === "different") && !decision.undone;
  const titles = [decision.question_title || decision.question, decision.candidate_title || decision.candidate];
  const what = decision.kind === "undone" ? `undid entry ${decision.undoes}` : KINDS[decision.kind];
  const label = h("span", { class: "unseen" }, ` entry ${decision.number}`);
  return h(
    "li",
    { value: decision.number },
    about(decision),
    " ",
    h("strong", {}, what, decision.undone ? " (undone)" : ""),
    `: “${titles[0]}” · “${titles[1]}”`,
    stands ? h("button", { class: "button quiet", type: "button", on: { click: () => takeBack(decision.number) } }, "Undo", label) : null,
  );
}

const about = ({ by, at }) => h("span", { class: "aside" }, [by, minute(at)].filter(Boolean).join(", "));
