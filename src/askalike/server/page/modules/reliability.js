// What was said of the pairs that people judged against how many of them they called the same: a point a group of probability,
// its 95 % interval as a line. The table beside it says the same, so the picture is left out for screen readers.

import { s } from "./dom.js";

const SIZE = 230;
const EDGE = 34;
const MARGIN = 18;
const TICKS = [0, 0.5, 1];

const x = (share) => EDGE + share * (SIZE - EDGE - MARGIN);
const y = (share) => SIZE - EDGE - share * (SIZE - EDGE - MARGIN);

/** The picture of groups of judged pairs. */
export function reliabilityPicture(bins) {
  return s(
    "svg",
    { class: "calibration", viewBox: `0 0 ${SIZE} ${SIZE}`, "aria-hidden": "true", focusable: "false" },
    s("rect", { class: "plot", x: x(0), y: y(1), width: x(1) - x(0), height: y(0) - y(1) }),
    s("line", { class: "promise", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    TICKS.map((share) => [
      s("text", { x: x(share), y: y(0) + 14, "text-anchor": "middle" }, `${100 * share} %`),
      s("text", { x: x(0) - 4, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`),
    ]),
    s("text", { x: x(0.5), y: SIZE - 4, "text-anchor": "middle" }, "said"),
    s("text", { x: x(0) + 4, y: y(1) + 12 }, "judged the same"),
    bins.map(point),
  );
}

function point({ mean, judged, same, low, high }) {
  const share = same / judged;
  return s(
    "g",
    { class: "point" },
    s("line", { x1: x(mean), y1: y(low), x2: x(mean), y2: y(high) }),
    s("circle", { cx: x(mean), cy: y(share), r: Math.min(9, 3 + Math.sqrt(judged) / 2) }),
  );
}
