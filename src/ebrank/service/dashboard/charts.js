/**
 * Small charts as SVG elements: `line`, `scatter`, `density`, `spark` and `bar`.
 *
 * Each returns one element, drawn again whenever data or width change.
 * Colors and strokes come from the style sheet by class: a series has a `tone` ("ink", "accent",
 * "quiet") and may be `dashed`. Pointing at a chart shows the values under the pointer in
 * the place of the legend, by CSS alone.
 */

import { s } from "./dom.js";
import { highest, linear, path, roundUp } from "./scale.js";

const LEFT = 44;
const RIGHT = 8;
const TOP = 26;
const BOTTOM = 20;
const NARROW = 380; // pixels: legends begin at the edge

const classes = (kind, { tone, dashed }) => `${kind} ${tone}${dashed ? " dashed" : ""}`;

/**
 * Lines over a common x axis.
 *
 * @param {number} width pixels
 * @param {object} chart `x`: numbers; `series`: [{name, tone, dashed?, values}], null where
 *   unknown; `formatX`, `formatY`; `label`: what the chart shows, for those who do not see it;
 *   `top`: the end of the y axis, by default a round number above the data; `ticksX`: where to write
 *   at the x axis, by default its ends; `references`: [{name, value}], levels to compare with; `marks`:
 *   [{x, name}], moments to remember; `step`, `height`.
 */
export function line(width, chart) {
  const { x, series, formatX, formatY, label, top, step = false, height = 180 } = chart;
  const { references = [], marks = [] } = chart;
  const end = top ?? roundUp(highest([...references.map(({ value }) => value), ...series.flatMap((one) => one.values)]));
  const toX = linear([x[0], x[x.length - 1]], [LEFT, width - RIGHT]);
  const toY = linear([0, end], [height - BOTTOM, TOP]);
  const drawn = series.map((one) => {
    const points = one.values.map((value, i) => [toX(x[i]), value === null ? null : toY(value)]);
    return [s("path", { class: classes("line", one), d: path(points, step) }), ...alone(points, one)];
  });
  const ticksX = chart.ticksX ?? (x.length > 1 ? [x[0], x[x.length - 1]] : x);
  return frame(width, height, `${label}. ${spoken(series, formatY)}`, [
    axisY(width, [0, end / 2, end], toY, formatY),
    axisX(width, height, ticksX, toX, formatX),
    marked(marks, toX, width, height),
    drawn,
    references.map((one) => reference(one, width, toY, formatY)),
    legend("legend", width, series, formatY, null),
    x.map((value, i) => slot(i, x, toX, width, height, series, formatY, formatX(value))),
  ]);
}

/** Moments on the axis of x; names that would touch another are left to the pointer. */
function marked(marks, toX, width, height) {
  let free = 0;
  return [...marks]
    .sort((a, b) => a.x - b.x)
    .map(({ x, name }) => {
      const place = toX(x);
      const length = 8 + 6 * name.length;
      const back = place + length > width; // at the right edge, the name stands on the left
      const shown = place - (back ? length : 0) >= free;
      if (shown) free = place + (back ? 0 : length);
      return s("g", { class: "mark" }, [
        s("title", {}, name),
        s("line", { x1: place, x2: place, y1: TOP, y2: height - BOTTOM }),
        shown ? s("text", { x: place + (back ? -3 : 3), y: TOP + 10, "text-anchor": back ? "end" : "start" }, name) : null,
      ]);
    });
}

function reference({ name, value }, width, toY, format) {
  const y = toY(value);
  return s("g", { class: "reference" }, [
    s("line", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
    s("text", { x: width - RIGHT, y: y < TOP + 14 ? y + 12 : y - 4, "text-anchor": "end" }, `${name} ${format(value)}`),
  ]);
}

/** A value between two holes has no line: draw a dot. */
function alone(points, one) {
  const known = (i) => points[i] !== undefined && points[i][1] !== null;
  return points
    .filter((_, i) => known(i) && !known(i - 1) && !known(i + 1))
    .map(([cx, cy]) => s("circle", { class: classes("dot", one), cx, cy, r: 2.5 }));
}

/**
 * Points [{x, y, size, tip}] beside the diagonal on which they would lie if y were x.
 */
export function scatter(width, { points, format, nameX, nameY, label, height = 220 }) {
  const end = roundUp(1.05 * highest(points.flatMap((point) => [point.x, point.y])));
  const toX = linear([0, end], [LEFT, width - RIGHT]);
  const toY = linear([0, end], [height - BOTTOM, TOP]);
  const most = highest(points.map((point) => point.size));
  return frame(width, height, label, [
    axisY(width, [0, end / 2, end], toY, format),
    axisX(width, height, [0, end / 2, end], toX, format),
    s("line", { class: "diagonal", x1: toX(0), y1: toY(0), x2: toX(end), y2: toY(end) }),
    s("text", { class: "legend", x: LEFT, y: 12 }, `${nameY} ↑ against ${nameX} →`),
    points.map((point) => {
      const [cx, cy] = [toX(point.x), toY(point.y)];
      return s("g", { class: "slot" }, [
        s("circle", { class: "dot accent", cx, cy, r: 2.5 + 5.5 * Math.sqrt(point.size / most) }),
        s("text", { class: "tip", x: LEFT, y: 12 }, point.tip),
      ]);
    }),
  ]);
}

/**
 * The belief about one item: the prior's density as a ghost, the posterior's in front, its
 * 90 % interval as a bar below, and last its score: relevance with the bonus stacked on it. All items
 * of a query share the x axis [0, end]. Heights are relative: the area tells no more than the width
 * does not. A score beyond the axis is an arrow at its end.
 */
export function density({ prior, posterior, interval, relevance, bonus, end, label }) {
  const [width, height, base] = [400, 46, 30]; // stretched by the style sheet to the cell's width
  const toX = linear([0, end], [1, width - 1]);
  const hill = (points) => {
    // A density that is infinite at 0 must not flatten the rest: near 0 it is cut off.
    const peak = highest(points.filter(([v]) => v >= end / 100 && v <= end).map(([, y]) => y));
    const toY = linear([0, peak || 1], [base, 2]);
    const top = within(points, end).map(([v, y]) => [toX(v), toY(Math.min(y, peak))]);
    return `${path(top)}L${top[top.length - 1][0].toFixed(1)} ${base}L${top[0][0].toFixed(1)} ${base}Z`;
  };
  const place = (v) => toX(Math.min(Math.max(v, 0), end));
  const [low, high] = interval.map(place);
  const stretched = { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" };
  return s("svg", { class: "chart density", ...stretched, role: "img", "aria-label": label }, [
    s("path", { class: "hill prior", d: hill(prior) }),
    s("path", { class: "hill posterior", d: hill(posterior) }),
    s("line", { class: "baseline", x1: 0, x2: width, y1: base, y2: base }),
    s("line", { class: "interval", x1: low, x2: Math.max(high, low + 2), y1: base + 4, y2: base + 4 }),
    s("rect", { class: "relevance", x: 1, y: base + 8, width: place(relevance) - 1, height: 6 }),
    s("rect", { class: "bonus", x: place(relevance), y: base + 8, width: place(relevance + bonus) - place(relevance), height: 6 }),
    relevance + bonus > end
      ? s("path", { class: "beyond", d: `M${width - 8} ${base + 6}L${width} ${base + 11}L${width - 8} ${base + 16}Z` })
      : null,
  ]);
}

/** The points of a curve up to the end of its axis, and the one where it crosses it. */
function within(points, end) {
  const beyond = points.findIndex(([v]) => v > end);
  if (beyond < 0) return points;
  if (beyond === 0) return [[end, 0]];
  const [[from, low], [to, high]] = points.slice(beyond - 1);
  return [...points.slice(0, beyond), [end, linear([from, to], [low, high])(end)]];
}

/** A line without axes, to stand beside a number. */
export function spark(values, { tone = "ink", width = 96, height = 28 } = {}) {
  const toX = linear([0, Math.max(1, values.length - 1)], [1, width - 1]);
  const toY = linear([0, highest(values) || 1], [height - 2, 2]);
  const points = values.map((value, i) => [toX(i), value === null ? null : toY(value)]);
  return s("svg", { class: "chart spark", width, height, "aria-hidden": "true" }, [
    s("path", { class: `line ${tone}`, d: path(points) }),
  ]);
}

/** A share from 0 to 1 as a bar for a cell of a table, which says the number in words beside it. */
export function bar(share, { width = 200, height = 12 } = {}) {
  return s("svg", { class: "chart share", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, [
    s("rect", { class: "track", width, height }),
    s("rect", { class: "part", width: width * share, height }),
  ]);
}

// --- the parts charts share --------------------------------------------------------------------

function frame(width, height, label, children) {
  return s("svg", { class: "chart", width, height, role: "img", "aria-label": label }, children);
}

function axisY(width, ticks, toY, format) {
  return ticks.map((tick) => [
    s("line", { class: tick === 0 ? "baseline" : "grid", x1: LEFT, x2: width - RIGHT, y1: toY(tick), y2: toY(tick) }),
    s("text", { class: "tick", x: LEFT - 6, y: toY(tick) + 4, "text-anchor": "end" }, format(tick)),
  ]);
}

function axisX(width, height, ticks, toX, format) {
  return ticks.map((tick) => belowAxis("tick moment", toX(tick), width, height, format(tick)));
}

/** A text at the x axis that stays within the chart. */
function belowAxis(kind, x, width, height, text) {
  const half = 3.5 * text.length;
  const anchor = x - half < LEFT - 10 ? "start" : x + half > width - RIGHT ? "end" : "middle";
  return s("text", { class: kind, x, y: height - 5, "text-anchor": anchor }, text);
}

/** The names of the series with their values at place `i`, or the latest ones. */
function legend(kind, width, series, format, i) {
  const shown = series.map((one, place) => {
    const value = i === null ? latest(one.values) : one.values[i];
    return [
      s("tspan", { class: classes("key", one), dx: place ? 14 : 0 }, one.dashed ? "╍ " : "━ "),
      s("tspan", { class: "name" }, `${one.name} `),
      s("tspan", { class: "value" }, value === null ? "–" : format(value)),
    ];
  });
  return s("text", { class: kind, x: width < NARROW ? 0 : LEFT, y: 12 }, shown);
}

function slot(i, x, toX, width, height, series, format, when) {
  const from = i === 0 ? toX(x[0]) : (toX(x[i - 1]) + toX(x[i])) / 2;
  const to = i === x.length - 1 ? toX(x[i]) + 4 : (toX(x[i]) + toX(x[i + 1])) / 2;
  const [top, bottom] = [TOP, height - BOTTOM];
  return s("g", { class: "slot" }, [
    s("rect", { class: "hit", x: from, y: top, width: Math.max(0.5, to - from), height: bottom - top }),
    s("line", { class: "guide", x1: toX(x[i]), x2: toX(x[i]), y1: top, y2: bottom }),
    legend("tip", width, series, format, i),
    belowAxis("tip", toX(x[i]), width, height, when),
  ]);
}

function latest(values) {
  return values.findLast((value) => value !== null) ?? null;
}

function spoken(series, format) {
  const text = (value) => (value === null ? "unknown" : format(value));
  return series.map((one) => `${one.name}: latest ${text(latest(one.values))}`).join(", ");
}
