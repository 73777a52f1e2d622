// Review: likely duplicates one after the other, decided on by a key. A decision is sent at once; the last ones can be undone.

import { decide, duplicates, undo } from "./api.js";
import { announce, fill, h, icon, PATHS } from "./dom.js";
import { likelihoodLine } from "./likelihood.js";
import { isLinking, logElement, moderator, queueFields, suggestCategories } from "./moderation.js";
import { note, waiting, wrong } from "./notes.js";
import { nameOf, pairElement, Texts } from "./pair.js";
import { listenToKeys, keysSwitch } from "./shortcuts.js";
import { count, titleOf } from "./words.js";

const MINIMUM = 0.5;
const PRELOAD = 3;
const POLL_MS = 3000;
const REFUSED = [409, 422];
const VERDICTS = { duplicate: "the same", different: "different" };

/** Fills the view with the queue, or that of a tag or of a promised precision, beginning with the likeliest pair. */
export function showReview(section, { query }) {
  const queue = new Queue(section, query.get("minimum") ?? "", query.get("tag") ?? "");
  const actions = {
    y: queue.yes,
    n: queue.no,
    j: queue.next,
    ArrowRight: queue.next,
    k: queue.back,
    ArrowLeft: queue.back,
    u: queue.undo,
  };
  const stop = listenToKeys(section, actions);
  queue.more();
  return () => {
    stop();
    queue.leave();
  };
}

class Queue {
  constructor(section, minimum, tag) {
    this.minimum = minimum || MINIMUM;
    this.key = "";
    this.tag = tag;
    this.pairs = [];
    this.at = 0;
    this.cursor = null;
    this.isAll = false;
    this.judged = [];
    this.isSending = false;
    this.running = new AbortController();
    this.texts = new Texts(this.running.signal);
    this.place = h("div", { class: "place" });
    this.said = h("p", { class: "said" });
    this.count = h("p", { class: "aside" });
    this.log = logElement(this.you, this.running.signal, this.forget);
    section.append(
      h("div", { class: "row heading" }, h("h1", { tabindex: "-1" }, "Are these the same?"), this.count),
      ...(tag ? [h("p", {}, h("span", { class: "tag" }, tag), " ", h("a", { href: "#/review" }, "All pairs"))] : []),
      this.place,
      h("div", { class: "row under" }, this.said, keysSwitch()),
      queueFields(tag, minimum),
      this.log,
    );
  }

  you = () => this.key || moderator();

  more = async () => {
    if (this.isLoading) return;
    this.isLoading = true;
    clearTimeout(this.timer);
    if (!this.place.firstChild) fill(this.place, waiting(2));
    try {
      const answer = await duplicates(this.cursor, this.minimum, this.tag, this.running.signal);
      this.key = answer.you ?? "";
      const field = document.querySelector(".queue .who");
      if (field) field.hidden = Boolean(this.key); // the key says it
      const known = new Set(this.pairs.map(nameOf));
      this.pairs.push(...answer.pairs.filter((pair) => !known.has(nameOf(pair))));
      suggestCategories(this.pairs);
      this.cursor = answer.next;
      this.isAll = !answer.next;
      this.progress = answer.progress;
      this.isLoading = false;
      this.show();
    } catch (error) {
      this.isLoading = false;
      if (error.name !== "AbortError") fill(this.place, wrong(error, this.more));
    }
  };

  show = () => {
    if (this.running.signal.aborted) return;
    const left = this.pairs.filter((pair) => !pair.verdict).length;
    fill(this.count, left ? `${this.isAll ? "" : "more than "}${count(left, "pair")} to judge` : "");
    const pair = this.pairs[this.at];
    if (!pair && !this.isAll) return void this.more();
    if (!pair) return this.showEnd(left);
    if (this.shown !== pair || this.shownVerdict !== pair.verdict || !this.place.querySelector("#pair"))
      this.draw(pair);
    if (!this.isAll && this.at > this.pairs.length - PRELOAD) this.more();
  };

  showEnd(left) {
    const { done, questions } = this.progress ?? {};
    const looking = done < questions ? `${done.toLocaleString()} of ${count(questions, "question")} are compared.` : "";
    const heading = left
      ? "That was the last pair."
      : this.judged.length
        ? "All judged. Thank you."
        : looking
          ? "Looking for duplicates …"
          : "No likely duplicates.";
    const again = left
      ? h("button", { class: "button", type: "button", on: { click: this.first } }, "Start again")
      : null;
    if (looking) this.timer = setTimeout(this.again, POLL_MS);
    const holds = this.place.contains(document.activeElement);
    fill(
      this.place,
      note(
        heading,
        looking || (left ? `${count(left, "pair")} skipped.` : "New pairs appear here as the forum grows."),
        again,
        this.undoButton(),
      ),
    );
    if (holds) this.place.querySelector("button:enabled")?.focus();
    announce(heading);
  }

  again = () => {
    this.cursor = null;
    this.isAll = false;
    this.more();
  };

  draw(pair) {
    this.shown = pair;
    this.shownVerdict = pair.verdict;
    const holds = this.place.contains(document.activeElement);
    fill(
      this.place,
      h(
        "div",
        { class: "row odds" },
        likelihoodLine(pair),
        h("span", { class: "aside legend" }, h("mark", { class: "differs" }, "marked"), " words differ"),
        pair.verdict ? h("span", { class: "tag" }, `judged ${VERDICTS[pair.verdict]}`) : null,
      ),
      pairElement(pair, this.texts),
      this.buttons(),
    );
    if (holds) this.place.querySelector(".verdicts button").focus();
    announce(`${titleOf(pair.question)}. And: ${titleOf(pair.candidate)}`);
    this.readAhead(this.pairs[this.at + 1]);
  }

  readAhead(pair) {
    if (pair) [pair.question, pair.candidate].forEach(({ id }) => this.texts.of(id).catch(() => {}));
  }

  buttons() {
    const button = (label, key, action, look = "") =>
      h(
        "button",
        { class: `button ${look}`, type: "button", on: { click: action } },
        label,
        h("kbd", { "aria-hidden": "true" }, key),
      );
    return h(
      "div",
      { class: "row verdicts", role: "group", "aria-label": "Your verdict" },
      button("The same", "y", this.yes),
      button("Different", "n", this.no),
      h("span", { class: "gap" }),
      button("Back", "k", this.back, "quiet"),
      button("Next", "j", this.next, "quiet"),
      this.undoButton(),
    );
  }

  undoButton() {
    return h(
      "button",
      { class: "button quiet", type: "button", disabled: !this.judged.length, on: { click: this.undo } },
      icon(PATHS.undo),
      "Undo",
      h("kbd", { "aria-hidden": "true" }, "u"),
    );
  }

  yes = () => this.judge("duplicate");
  no = () => this.judge("different");

  next = () => this.move(1);
  back = () => this.move(-1);

  first = () => {
    this.at = Math.max(
      0,
      this.pairs.findIndex((pair) => !pair.verdict),
    );
    this.show();
  };

  move(step) {
    const to = this.at + step;
    if (this.isSending || to < 0 || to > this.pairs.length) return;
    this.at = to;
    this.show();
  }

  judge(verdict, link = isLinking()) {
    const pair = this.pairs[this.at];
    if (!pair) return;
    if (pair.verdict === verdict) return void this.next();
    const place = this.at;
    const before = this.judged.find((decision) => decision.pair === pair);
    const request = async () => {
      if (before) await undo(before.number, moderator());
      if (before) this.judged = this.judged.filter((decision) => decision !== before);
      return decide(pair, verdict, link, moderator());
    };
    const stored = ({ number, made_link: isLinked }) => {
      pair.verdict = verdict;
      this.judged.push({ pair, at: place, number });
      this.at = place + 1;
      const what = `Judged ${VERDICTS[verdict]}${isLinked ? " and linked" : ""}: “${titleOf(pair.question)}”.`;
      fill(this.said, `${what} Undo (u) takes it back.`);
    };
    const unlinked = () => this.judge(verdict, false);
    const may = verdict === "duplicate" && link;
    const other = h("button", { class: "button", type: "button", on: { click: unlinked } }, "Judge without a link");
    return this.send(request, stored, may ? other : null);
  }

  undo = () => {
    const last = this.judged.at(-1);
    if (!last) return;
    return this.send(
      () => undo(last.number, moderator()),
      () => {
        this.forget(last.number);
        this.at = last.at;
        fill(this.said, `Undone: “${titleOf(last.pair.question)}”`);
      },
    );
  };

  forget = (number) => {
    const decision = this.judged.find((judged) => judged.number === number);
    if (!decision) return;
    delete decision.pair.verdict;
    this.judged = this.judged.filter((judged) => judged !== decision);
    this.shown = null; // its buttons say what can be undone
    this.show();
  };

  async send(request, after, other = null) {
    if (this.isSending) return;
    this.isSending = true;
    try {
      after(await request());
    } catch (error) {
      const again = wrong(error, () => this.send(request, after, other));
      if (other && REFUSED.includes(error.status)) again.append(other);
      return void fill(this.said, again);
    } finally {
      this.isSending = false;
    }
    this.log.fresh();
    this.show();
  }

  leave() {
    clearTimeout(this.timer);
    this.running.abort();
  }
}
