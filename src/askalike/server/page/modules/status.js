// Status: what the forum holds, whether its indexes are in step; looked at again every few seconds.

import { status } from "./api.js";
import { fill, h } from "./dom.js";
import { note, waiting, wrong } from "./notes.js";
import { reliabilityPicture } from "./reliability.js";
import { count, date, duration, percent, size, whole } from "./words.js";

const EVERY_MS = 5000;

/** Fills the view and keeps it fresh until it is left or paused. */
export function showStatus(section) {
  const running = new AbortController();
  const place = h("div", { class: "place" });
  const box = h("input", { type: "checkbox", checked: true });
  section.append(
    h(
      "div",
      { class: "row heading" },
      h("h1", { tabindex: "-1" }, "Service status"),
      h("label", { class: "switch" }, box, "Keep fresh"),
    ),
    place,
  );
  fill(place, waiting(2));
  const look = async () => {
    try {
      const state = await status(running.signal);
      if (!running.signal.aborted) draw(place, state);
    } catch (error) {
      if (error.name !== "AbortError") fill(place, wrong(error, look));
    }
  };
  const timer = setInterval(() => box.checked && !document.hidden && look(), EVERY_MS);
  look();
  return () => {
    clearInterval(timer);
    running.abort();
  };
}

function draw(place, state) {
  fill(
    place,
    isOpen(state.service) ? note("No API key required.", "Everyone who can reach this address may read and write.") : null,
    h(
      "div",
      { class: "tiles" },
      forumTile(state),
      stepTile(state),
      modelTile(state),
      reviewTile(state),
      serviceTile(state),
    ),
    reliabilityCard(state.reliability),
    h("p", { class: "aside" }, "How fast answers are: ", h("a", { href: "metrics" }, "metrics"), " in Prometheus format."),
  );
}

/** Whether others than this machine's users may write. */
function isOpen(service) {
  return service.open_without_key && service.may.write && !/^(localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);
}

function tile(name, figure, facts) {
  return h(
    "section",
    { class: "card tile" },
    h("h2", {}, name),
    h("p", { class: "figure" }, figure),
    h(
      "dl",
      {},
      facts.filter(Boolean).map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
    ),
  );
}

function forumTile({ forum }) {
  return tile("Forum", count(forum.questions, "question"), [
    ["Answers", whole(forum.answers)],
    ["Answered", forum.questions ? percent(forum.answered / forum.questions) : "–"],
    ["Duplicate links", whole(forum.duplicates)],
    forum.first ? ["Asked", `${date(forum.first)} to ${date(forum.last)}`] : null,
    ["Language", forum.language],
    ["On disk", size(forum.size_bytes)],
  ]);
}

function stepTile({ index, vectors, duplicates }) {
  const isInStep = !index.behind && !vectors.waiting;
  return tile("Index", h("span", { class: isInStep ? "good" : "slow" }, isInStep ? "In step" : "Catching up"), [
    ["Pending changes", whole(index.behind)],
    ["Waiting for encoding", whole(vectors.waiting)],
    ["Compared for duplicates", `${whole(duplicates.done)} of ${whole(duplicates.questions)}`],
  ]);
}

function modelTile({ vectors, ranker, rankers }) {
  const isThere = rankers.filter((ranker) => ranker.available).map((ranker) => ranker.name);
  const [, name, kind] = /^(.*?)(?: \((.*)\))?$/.exec(vectors.model ?? "") ?? [];
  return tile("Model", name || "Words alone", [
    kind ? ["Kind", kind] : null,
    ["Vectors", whole(vectors.entries)],
    vectors.next_model ? ["Being taken", vectors.next_model] : null,
    ["Ranker", ranker],
    ["At hand", isThere.join(", ")],
  ]);
}

function reviewTile({ duplicates, feedback, helped }) {
  return tile("Review", count(duplicates.pairs, "near pair"), [
    ["Judged duplicates", whole(feedback.duplicate)],
    ["Judged different", whole(feedback.different)],
    ["To judge", h("a", { href: "#/review" }, "those of 50 % and more")],
    ["Askers who were helped", helped.times ? `${whole(helped.times)}, by ${count(helped.questions, "question")}` : "0"],
  ]);
}

function serviceTile({ service, version }) {
  const may = [service.may?.read && "read", service.may?.write && "write"].filter(Boolean).join(" and ");
  return tile("Service", `Up ${duration(service.uptime_s)}`, [
    ["Version", version],
    ["Requests", whole(service.requests)],
    ["Workers", whole(service.workers)],
    may ? ["You may", may] : null,
  ]);
}

/** What was said of pairs beside what people judged, as a picture and as a table. */
function reliabilityCard(bins) {
  const heading = h("h2", { id: "reliability" }, "Do the probabilities hold?");
  if (!bins.length)
    return h(
      "section",
      { class: "card table" },
      heading,
      h("p", { class: "aside" }, "Nobody has judged a pair yet. ", h("a", { href: "#/review" }, "Judge some"), "."),
    );
  const head = ["Said", "Judged pairs", "The same", "95 % interval"].map((name) => h("th", { scope: "col" }, name));
  const rows = bins.map((bin) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, `${percent(bin.least)} to ${percent(bin.below)}`),
      [whole(bin.judged), percent(bin.same / bin.judged), `${percent(bin.low)} to ${percent(bin.high)}`].map((value) =>
        h("td", {}, value),
      ),
    ),
  );
  return h(
    "section",
    { class: "card table", "aria-labelledby": "reliability" },
    heading,
    h("p", { class: "aside" }, "Each point is a group of judged pairs. On the line, as many were the same as was said."),
    h(
      "div",
      { class: "reliability" },
      reliabilityPicture(bins),
      h(
        "div",
        { class: "scrolled", tabindex: "0", role: "region", "aria-label": "Judged pairs by probability" },
        h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
      ),
    ),
  );
}
