// A question among its neighbours, drawn as circles around it: the nearer the likelier, or the higher their scores. The list
// beside it says the same in words and is walked by keyboard, so the picture is left out for screen readers.

import { s } from "./dom.js";
import { exploreAddress } from "./hit.js";
import { nearness } from "./likelihood.js";
import { titleOf } from "./words.js";

const WIDTH = 560;
const HEIGHT = 400;
const INNER = 52;
const OUTER = 180;
const WIDER = 1.38;
const RINGS = [0.75, 0.5, 0.25, 0];
const DOT = 15;

/** The distance from the middle, of what is 1 at the middle and 0 at the rim. */
const radius = (near) => INNER + (OUTER - INNER) * (1 - near);

/** The picture, and a function that lights the circle of a rank. `onLight(hit, isLit)` is called as the pointer passes. */
export function nearnessPicture(question, hits, onLight) {
  const { of, text } = nearness(hits);
  const nodes = new Map();
  const lines = s("g", { class: "lines" });
  const dots = s("g", { class: "dots" });
  hits.forEach((hit, at) => {
    const near = of(hit);
    const place = position(near, at, hits.length);
    lines.append(s("line", { x1: 0, y1: 0, x2: place.x, y2: place.y, "stroke-width": 1 + 2.5 * near }));
    const node = dot(hit, place, onLight);
    nodes.set(hit.rank, node);
    dots.append(node);
  });
  const element = s(
    "svg",
    {
      class: "nearness",
      viewBox: `${-WIDTH / 2} ${-HEIGHT / 2} ${WIDTH} ${HEIGHT}`,
      "aria-hidden": "true",
      focusable: "false",
    },
    RINGS.map((near) => ring(near)),
    lines,
    s(
      "g",
      { class: "middle" },
      s("title", {}, titleOf(question)),
      s("circle", { r: 20 }),
      s("circle", { class: "eye", r: 7 }),
    ),
    dots,
    s(
      "g",
      { class: "names" },
      RINGS.map((near) => ringName(near, text(near), hits.length)),
    ),
  );
  const light = (rank) => nodes.forEach((node, one) => node.classList.toggle("lit", one === rank));
  return { element, light };
}

/** The place of a nearness in the direction of the hit `at`; ring names stand between the last hit and the first. */
function position(near, at, total) {
  const angle = -Math.PI / 2 + (2 * Math.PI * at) / total;
  const far = radius(near);
  return { x: Math.round(far * WIDER * Math.cos(angle)), y: Math.round(far * Math.sin(angle)) };
}

function ring(near) {
  return s("ellipse", { class: "ring", rx: radius(near) * WIDER, ry: radius(near) });
}

function ringName(near, name, total) {
  const { x, y } = position(near, total - 0.5, total);
  return s("text", { x, y: y + 4 }, name);
}

function dot(hit, { x, y }, onLight) {
  return s(
    "g",
    {
      class: "dot",
      transform: `translate(${x} ${y})`,
      on: {
        click: () => (location.hash = exploreAddress(hit.question.id)),
        pointerenter: () => onLight(hit, true),
        pointerleave: () => onLight(hit, false),
      },
    },
    s("title", {}, titleOf(hit.question)),
    s("circle", { r: DOT }),
    s("text", { y: 5 }, hit.rank),
  );
}
