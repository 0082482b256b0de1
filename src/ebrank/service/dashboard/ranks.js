/**
 * Ranks over time since arrival, one line for each item: rank 1 at the top, a band for the top k.
 *
 * Both axes are logarithmic, log(rank) and log(1 + seconds): the first places and the first seconds
 * matter most. Pointing at a line shows whose it is in the place of the caption.
 */

import { s } from "./dom.js";
import { ages } from "./format.js";
import { linear, path } from "./scale.js";

const LEFT = 34;
const RIGHT = 8;
const TOP = 26;
const BOTTOM = 20;

/**
 * @param {number} width pixels
 * @param {object} chart `lines`: [{seconds, ranks, tone, tip}], those that matter last; `k`: the end of
 *   the top; `last`: the lowest rank; `end`: the highest age; `caption`, `label`, `height`.
 */
export function ranks(width, { lines, k, last, end, caption, label, height = 230 }) {
  const toX = linear([0, Math.log1p(end)], [LEFT, width - RIGHT]);
  const toY = linear([0, Math.log(last)], [TOP + 4, height - BOTTOM]);
  const cut = toY(Math.log(Math.min(k + 0.5, last)));
  return s("svg", { class: "chart", width, height, role: "img", "aria-label": label }, [
    s("rect", { class: "top", x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: cut - TOP }),
    s("line", { class: "cutoff", x1: LEFT, x2: width - RIGHT, y1: cut, y2: cut }),
    axis(width, [1, k, last], toY),
    ages(end, width).map((age) => tick(age, toX, width, height)),
    s("text", { class: "legend", x: LEFT, y: 12 }, caption),
    lines.map((one) => drawn(one, toX, toY, last)),
  ]);
}

function axis(width, marks, toY) {
  const lines = marks.map((rank) => toY(Math.log(rank)));
  return marks
    .filter((_, i) => i === 0 || lines[i] - lines[i - 1] > 12)
    .map((rank) => s("text", { class: "tick", x: LEFT - 6, y: toY(Math.log(rank)) + 4, "text-anchor": "end" }, rank));
}

function tick({ seconds, name }, toX, width, height) {
  const x = toX(Math.log1p(seconds));
  const anchor = x > width - RIGHT - 20 ? "end" : x < LEFT + 1 ? "start" : "middle";
  return s("text", { class: "tick", x, y: height - 5, "text-anchor": anchor }, name);
}

function drawn({ seconds, ranks: places, tone, tip }, toX, toY, last) {
  const points = seconds.map((age, i) => [toX(Math.log1p(age)), toY(Math.log(Math.min(places[i], last)))]);
  const [x, y] = points.at(-1);
  const d = path(points);
  return s("g", { class: "slot" }, [
    s("path", { class: "line reach", d }),
    s("path", { class: `line rising ${tone}`, d }),
    s("circle", { class: `dot ${tone}`, cx: x.toFixed(1), cy: y.toFixed(1), r: 2.5 }),
    s("text", { class: "tip", x: LEFT, y: 12 }, tip),
  ]);
}
