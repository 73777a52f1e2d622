// Review: likely duplicates one after the other, judged by a key. A verdict is sent at once; the last ones can be undone.

import { duplicates, judge, question as fetchQuestion } from "./api.js";
import { bodyElement } from "./body.js";
import { announce, fill, h, icon, PATHS } from "./dom.js";
import { aboutLine, byLine, exploreAddress, titleLink } from "./hit.js";
import { likelihoodLine } from "./likelihood.js";
import { note, waiting, wrong } from "./notes.js";
import { differences } from "./differences.js";
import { listenToKeys, keysSwitch } from "./shortcuts.js";
import { count } from "./words.js";

const MINIMUM = 0.5;
const PRELOAD = 3;
const VERDICTS = { duplicate: "the same", different: "different" };

/** Fills the view with the queue, beginning with the likeliest pair. */
export function showReview(section) {
  const queue = new Queue(section);
  const actions = { y: queue.yes, n: queue.no, j: queue.next, ArrowRight: queue.next, k: queue.back, ArrowLeft: queue.back, u: queue.undo };
  const stop = listenToKeys(section, actions);
  queue.more();
  return () => {
    stop();
    queue.leave();
  };
}

class Queue {
  constructor(section) {
    this.pairs = [];
    this.at = 0;
    this.cursor = null;
    this.isAll = false;
    this.judged = [];
    this.isSending = false;
    this.texts = new Map();
    this.running = new AbortController();
    this.place = h("div", { class: "place" });
    this.said = h("p", { class: "said" });
    this.count = h("p", { class: "aside" });
    section.append(
      h("div", { class: "row heading" }, h("h1", { tabindex: "-1" }, "Are these the same?"), this.count),
      this.place,
      h("div", { class: "row under" }, this.said, keysSwitch()),
    );
  }

  more = async () => {
    if (!this.pairs.length) fill(this.place, waiting(2));
    try {
      const answer = await duplicates(this.cursor, MINIMUM, this.running.signal);
      const known = new Set(this.pairs.map(nameOf));
      this.pairs.push(...answer.pairs.filter((pair) => !known.has(nameOf(pair))));
      this.cursor = answer.next;
      this.isAll = !answer.next;
      this.progress = answer.progress;
      this.show();
    } catch (error) {
      this.failed(error, this.more);
    }
  };

  show = () => {
    const left = this.pairs.filter((pair) => !pair.verdict).length;
    fill(this.count, left ? `${count(left, "pair")}${this.isAll ? "" : " and more"} to judge` : "");
    const pair = this.pairs[this.at];
    if (!pair && !this.isAll) return void this.more();
    if (!pair) return this.showEnd(left);
    this.draw(pair);
    if (!this.isAll && this.at > this.pairs.length - PRELOAD) this.more();
  };

  showEnd(left) {
    const heading = left ? "That was the last pair." : this.judged.length ? "All judged. Thank you." : "No likely duplicates.";
    const { done, questions } = this.progress ?? {};
    const looking = done < questions ? `The archive is still being looked through: ${done} of ${questions} questions so far.` : "";
    const again = left ? h("button", { class: "button", type: "button", on: { click: this.first } }, "From the start") : null;
    fill(this.place, note(heading, looking || (left ? `${count(left, "pair")} left out.` : "New ones show here as the forum grows."), again, this.undoButton()));
    announce(heading);
  }

  draw(pair) {
    const holds = this.place.contains(document.activeElement);
    const sides = [pair.question, pair.candidate].map((brief) => this.side(brief, pair));
    fill(
      this.place,
      h("div", { class: "row odds" }, likelihoodLine({ components: { cosine: pair.cosine ?? 0 }, ...pair }), pair.verdict ? h("span", { class: "tag" }, `judged ${VERDICTS[pair.verdict]}`) : null),
      h("div", { class: "pair", id: "pair", "data-pair": nameOf(pair) }, sides.map((side) => side.element)),
      this.buttons(),
    );
    if (holds) this.place.querySelector(".verdicts button").focus();
    announce(`${pair.question.title}. And: ${pair.candidate.title}`);
    this.compare(pair, sides);
  }

  side(brief, pair) {
    const title = h("h2", {}, titleLink(brief, brief.title || "(no title)"));
    const text = h("div", { class: "post" }, h("p", {}, brief.excerpt));
    const element = h(
      "article",
      { class: "card question" },
      h("p", { class: "which" }, brief === pair.question ? "Asked later" : "Asked earlier"),
      title,
      aboutLine(brief),
      text,
      h("p", { class: "row foot" }, h("span", { class: "aside" }, count(brief.answers, "answer")), h("a", { class: "button quiet", href: exploreAddress(brief.id) }, "Neighbours", h("span", { class: "unseen" }, ` of “${brief.title}”`), icon(PATHS.walk))),
    );
    return { element, title, text, id: brief.id };
  }

  async compare(pair, sides) {
    try {
      const found = await Promise.all(sides.map(({ id }) => this.text(id)));
      if (this.pairs[this.at] !== pair || !sides[0].element.isConnected) return;
      sides.forEach((side, at) => {
        fill(side.text, bodyElement(found[at].html), foldedBest(found[at].answers));
      });
      differences(sides);
    } catch (error) {
      if (error.name !== "AbortError") differences(sides); // the excerpts are there to be judged by
    }
  }

  text(id) {
    if (!this.texts.has(id)) {
      const found = fetchQuestion(id, this.running.signal);
      found.catch(() => this.texts.delete(id));
      this.texts.set(id, found);
    }
    return this.texts.get(id);
  }

  buttons() {
    const button = (label, key, action, look = "") =>
      h("button", { class: `button ${look}`, type: "button", on: { click: action } }, label, h("kbd", { "aria-hidden": "true" }, key));
    return h(
      "div",
      { class: "row verdicts", role: "group", "aria-label": "Your verdict" },
      button("The same", "y", this.yes, "main"),
      button("Different", "n", this.no),
      h("span", { class: "gap" }),
      button("Back", "k", this.back, "quiet"),
      button("Next", "j", this.next, "quiet"),
      this.undoButton(),
    );
  }

  undoButton() {
    return h("button", { class: "button quiet", type: "button", disabled: !this.judged.length, on: { click: this.undo } }, icon(PATHS.undo), "Undo", h("kbd", { "aria-hidden": "true" }, "u"));
  }

  yes = () => this.judge("duplicate");
  no = () => this.judge("different");

  next = () => this.move(1);
  back = () => this.move(-1);

  first = () => {
    this.at = Math.max(0, this.pairs.findIndex((pair) => !pair.verdict));
    this.show();
  };

  move(step) {
    const to = this.at + step;
    if (this.isSending || to < 0 || to > this.pairs.length) return;
    this.at = to;
    this.show();
  }

  async judge(verdict) {
    const pair = this.pairs[this.at];
    if (!pair) return;
    await this.send(pair, verdict, () => {
      pair.verdict = verdict;
      this.judged.push({ pair, at: this.at });
      this.at += 1;
      fill(this.said, `Judged ${VERDICTS[verdict]}: “${pair.question.title}”`);
    });
  }

  undo = async () => {
    const last = this.judged.at(-1);
    if (!last) return;
    await this.send(last.pair, "withdrawn", () => {
      this.judged.pop();
      delete last.pair.verdict;
      this.at = last.at;
      fill(this.said, `Undone: “${last.pair.question.title}”`);
      announce("The last verdict is undone");
    });
  };

  async send(pair, verdict, after) {
    if (this.isSending) return;
    this.isSending = true;
    try {
      await judge(pair, verdict);
      after();
      this.isSending = false;
      this.show();
    } catch (error) {
      this.isSending = false;
      fill(this.said, wrong(error, () => this.send(pair, verdict, after)));
    }
  }

  failed(error, again) {
    if (error.name !== "AbortError") fill(this.place, wrong(error, again));
  }

  leave() {
    this.running.abort();
  }
}

const nameOf = ({ question, candidate }) => JSON.stringify([question.id, candidate.id]);

function foldedBest(answers) {
  if (!answers.length) return null;
  return h("details", { class: "folded" }, h("summary", {}, icon(PATHS.chevron), byLine(answers[0])), bodyElement(answers[0].html));
}
