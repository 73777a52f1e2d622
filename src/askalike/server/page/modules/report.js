// Report: what the suggestions of a month brought, as a curve and as a table, and the questions that helped most.

import { report } from "./api.js";
import { fill, h, s } from "./dom.js";
import { titleLink } from "./hit.js";
import { note, waiting, wrong } from "./notes.js";
import { count, date, whole } from "./words.js";

const WIDTH = 720;
const HEIGHT = 220;
const EDGE = 34;
const COLUMNS = {
  shown: "Visits",
  opened: "Opened",
  helped: "Helped",
  asked: "Asked all the same",
  duplicates: "Soon a duplicate",
  saved: "Saved",
};
const CURVES = ["shown", "opened", "saved"];
const share = (value) => `${(100 * value).toFixed(1)} %`;

/** Fills the view with a month, the running one at first. */
export function showReport(section) {
  const running = new AbortController();
  const place = h("div", { class: "place" });
  const month = h("input", { class: "field month", type: "month", id: "month", value: new Date().toISOString().slice(0, 7) });
  const look = async () => {
    fill(place, waiting(2));
    try {
      const found = await report(month.value, running.signal);
      if (!running.signal.aborted) draw(place, found);
    } catch (error) {
      if (error.name !== "AbortError") fill(place, wrong(error, look));
    }
  };
  month.addEventListener("change", look);
  const chosen = h("label", { class: "switch", for: "month" }, "Month", month);
  section.append(h("div", { class: "row heading" }, h("h1", { tabindex: "-1" }, "What suggestions bring"), chosen), place);
  look();
  return () => running.abort();
}

function draw(place, found) {
  const { total } = found;
  if (!found.days.length)
    return fill(
      place,
      note("Nothing was counted.", "Start the service with --outcomes, and add data-count to the widget's tag."),
    );
  const saved = total.shown ? `${share(total.saved / total.shown)} of ${count(total.shown, "visit")}` : "No visits";
  const interval = `95 % interval ${share(found.saved_low)} to ${share(found.saved_high)}: a suggestion helped, and nothing was asked.`;
  return fill(
    place,
    card("saved", `Saved: ${saved}`, h("p", { class: "aside" }, interval), curve(found.days), dayTable(found)),
    found.comparison ? card("comparison", "Two rankers compared", ...comparison(found.comparison)) : null,
    card("savers", "Questions that save most", questionTable(found.questions)),
  );
}

function card(id, heading, ...children) {
  return h("section", { class: "card table", "aria-labelledby": id }, h("h2", { id }, heading), children);
}

/** A line for each of what is counted, by day; the table below it has the same figures, so the picture is named only. */
function curve(days) {
  const most = Math.max(...days.map(({ counts }) => counts.shown), 1);
  const first = Date.parse(days[0].day);
  const span = Math.max(Date.parse(days.at(-1).day) - first, 1);
  const x = (day) => EDGE + ((WIDTH - 2 * EDGE) * (Date.parse(day) - first)) / span;
  const y = (value) => HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * value) / most;
  const lines = CURVES.map((name) => [
    s("polyline", { class: `line ${name}`, points: days.map(({ day, counts }) => `${x(day).toFixed(1)},${y(counts[name]).toFixed(1)}`).join(" ") }),
    days.map(({ day, counts }) => s("circle", { class: `line ${name}`, cx: x(day), cy: y(counts[name]), r: 2.5 })),
  ]);
  const key = CURVES.map((name) => h("span", { class: `key ${name}` }, COLUMNS[name]));
  return h(
    "div",
    { class: "outcomes" },
    h("p", { class: "aside keys" }, key),
    s(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Visits, opened and saved by day; the table has the figures" },
      s("line", { class: "axis", x1: EDGE, y1: y(0), x2: WIDTH - EDGE, y2: y(0) }),
      s("line", { class: "axis", x1: EDGE, y1: y(most), x2: WIDTH - EDGE, y2: y(most) }),
      s("text", { x: EDGE - 6, y: y(0) + 4, "text-anchor": "end" }, "0"),
      s("text", { x: EDGE - 6, y: y(most) + 4, "text-anchor": "end" }, whole(most)),
      s("text", { x: EDGE, y: HEIGHT - 10 }, date(days[0].day)),
      days.length > 1 ? s("text", { x: WIDTH - EDGE, y: HEIGHT - 10, "text-anchor": "end" }, date(days.at(-1).day)) : null,
      lines,
    ),
  );
}

function table(label, head, rows) {
  const cells = ([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), rest.map((one) => h("td", {}, one)));
  const heads = h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)));
  const made = h("table", {}, h("thead", {}, heads), h("tbody", {}, rows.map(cells)));
  return h("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": label }, made);
}

function dayTable({ days, total }) {
  const figures = (counts) => Object.keys(COLUMNS).map((name) => whole(counts[name]));
  const rows = days.map(({ day, counts }) => [date(day), ...figures(counts)]);
  return table("Counts by day", ["Day", ...Object.values(COLUMNS)], [["Month", ...figures(total)], ...rows]);
}

function questionTable(questions) {
  if (!questions.length) return h("p", { class: "aside" }, "No suggestion was opened yet.");
  const rows = questions.map((one) => [titleLink(one, one.title || one.id), whole(one.helped), whole(one.opened), whole(one.shown)]);
  return table("Questions that save most", ["Question", "Helped", "Opened", "Shown"], rows);
}

const VERDICTS = { default: "The default is better.", rival: "The other ranker is better.", "": "Neither is better by more than chance." };

function comparison(found) {
  const won = `Of ${count(found.visits, "visit")}, the default won ${whole(found.default)} and the other ${whole(found.rival)}; ${count(found.ties, "tie")}.`;
  const low = `The default's share is ${found.share === null ? "not known" : share(found.share)} (95 % interval ${share(found.low)} to ${share(found.high)}, p = ${found.p_value.toPrecision(2)}).`;
  return [h("p", {}, h("strong", {}, VERDICTS[found.better])), h("p", { class: "aside" }, won, " ", low)];
}
