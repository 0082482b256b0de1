/** The panels of the overview: each takes the data and a width in pixels, and returns elements. */

import { line, scatter } from "./charts.js";
import { h } from "./dom.js";
import { nothing } from "./empty.js";
import { count, counted, decimal, duration, half, milliseconds, percent, rate, ratio, timeOfDay } from "./format.js";
import { lostShare, settled, sum } from "./minutes.js";

const note = (...text) => h("p", { class: "note" }, text);

const SILENCE = "No list was served in the last hour. POST /v1/rank serves one.";

const NO_CLICK = "No click was reported in the last hour. POST /v1/feedback reports some.";

function overTime(width, minutes, series, formatY, label, top) {
  const x = minutes.map((minute) => minute.start);
  const drawn = series.map(({ of, ...look }) => ({ ...look, values: minutes.map(of) }));
  return line(width, { x, series: drawn, formatX: timeOfDay, formatY, label, top });
}

const quiet = (minutes) => sum(minutes, "rankings") === 0;

export function newAgainstOld({ insights, minutes }, width) {
  const about = note(`Share of items that entered less than ${duration(insights.new_seconds)} before.`);
  if (quiet(minutes)) return [about, nothing(SILENCE)];
  const telling = settled(insights, minutes);
  if (telling.length === 0) return [about, nothing(allNew(insights))];
  const shares = [
    { name: "exposure", tone: "accent", of: (m) => ratio(m.exposure_new, m.exposure_new + m.exposure_old) },
    { name: "clicks", tone: "ink", dashed: true, of: (m) => ratio(m.clicks_new, m.clicks_new + m.clicks_old) },
  ];
  return [about, overTime(width, telling, shares, percent, "New items' share of exposure and clicks")];
}

function allNew({ new_seconds: seconds, now, first_item: first }) {
  const minute = 60 * Math.ceil((first + seconds) / 60); // the first that is shown, when it is ten seconds old
  return `At first all items are new. Their share can be told in ${duration(Math.max(1, minute + 10 - now))}.`;
}

export function traffic({ insights, minutes }, width) {
  const { totals } = insights;
  const about = note(
    `${count(totals.rankings)} rankings and ${counted(totals.clicks, "click")} so far, over `,
    `${counted(totals.items, "item")} of ${counted(totals.queries, "query", "queries")}.`,
  );
  if (quiet(minutes)) return [about, nothing(SILENCE)];
  const flows = [
    { name: "rankings/s", tone: "ink", of: (m) => m.rankings / m.seconds },
    { name: "clicks/s", tone: "accent", dashed: true, of: (m) => m.clicks / m.seconds },
  ];
  return [about, overTime(width, minutes, flows, rate, "Rankings and clicks per second")];
}

export function latency({ minutes }, width) {
  const about = note("From the request to the logged list.");
  if (minutes.every((minute) => minute.latency_p50_ms === null)) return [about, nothing(SILENCE)];
  const times = [
    { name: "p50", tone: "ink", of: (m) => m.latency_p50_ms },
    { name: "p99", tone: "quiet", dashed: true, of: (m) => m.latency_p99_ms },
  ];
  return [about, overTime(width, minutes, times, milliseconds, "Median and 99th percentile latency")];
}

export function cost({ insights, minutes }, width) {
  const { exploration, k } = insights;
  const about = note(
    `Clicks lost, by expectation, against the order by relevance alone: ${rate(exploration.cost)} in the last hour `,
    `for ${counted(exploration.explored, "explored slot")}. Of the items found so, `,
    `${count(exploration.found)} now stand in the top ${k}.`,
  );
  if (quiet(minutes)) return [about, nothing(SILENCE)];
  if (lostShare(minutes) === null) return [about, nothing(NO_CLICK)];
  const lost = [{ name: "lost", tone: "accent", of: (m) => lostShare([m]) }];
  return [about, overTime(width, minutes, lost, percent, "Share of expected clicks lost to exploration")];
}

// --- waiting -----------------------------------------------------------------------------------

const MARKS = [1, 10, 60, 600, 3600, 21_600, 86_400, 604_800, 2_592_000];

export function waiting({ insights }, width) {
  const { first_shown: first, top_k: top } = insights.waiting;
  const about = note(
    "From entering to the first impression, and to a place in the list by relevance alone. ",
    `${half(first.median, "were shown")} `,
    half(top.median, "earned their place"),
  );
  if (first.happened === 0) return [about, nothing("No item was shown since it entered.")];
  const end = Math.max(10, 1 + Math.max(...first.seconds, ...top.seconds)); // waits below 1 s are a step to be seen
  // Seconds and days on one axis: log(1 + seconds).
  const x = Array.from({ length: 81 }, (_, i) => (Math.log1p(end) * i) / 80);
  const share = (curve) => x.map((place) => 1 - stillWaiting(curve, Math.expm1(place) * (1 + 1e-9)));
  const ticks = MARKS.filter((mark) => mark <= end).map(Math.log1p);
  const chart = line(width, {
    x,
    ticksX: thinned([0, ...ticks], width),
    series: [
      { name: "shown", tone: "accent", values: share(first) },
      { name: "by relevance", tone: "ink", dashed: true, values: share(top) },
    ],
    formatX: (place) => (place === 0 ? "0" : duration(Math.expm1(place))),
    formatY: percent,
    label: "Share of items that were shown, or earned their place, within a time",
    top: 1,
    step: true,
  });
  return [about, chart];
}

/** The value of a curve that falls at `seconds` to `still_waiting`; full seconds, so 0 is "within 1". */
function stillWaiting({ seconds, still_waiting: left }, time) {
  const fallen = seconds.findLastIndex((at) => at + 1 <= time);
  return fallen < 0 ? 1 : left[fallen];
}

function thinned(ticks, width) {
  const step = Math.ceil(ticks.length / Math.max(2, Math.floor(width / 70)));
  return ticks.filter((_, i) => i % step === 0);
}

// --- the prior ---------------------------------------------------------------------------------

export function calibration({ insights }, width) {
  const about = note("Items grouped by what their features promise: is it what users found? On the diagonal, it is.");
  if (insights.calibration.length === 0) return [about, nothing("No item was seen often enough yet.")];
  const points = insights.calibration.map(({ predicted, observed, rows }) => ({
    x: predicted,
    y: observed,
    size: rows,
    tip: `${counted(rows, "item")}: promised ${decimal(predicted)}, found ${decimal(observed)}`,
  }));
  const label = `Calibration of the prior. ${points.map((point) => point.tip).join("; ")}`;
  return [about, scatter(width, { points, format: decimal, nameX: "promised", nameY: "found", label, height: 180 })];
}

export function buried({ insights }) {
  const about = note("What the features promise and few users have seen. Open a query to see what is believed of its items.");
  if (insights.buried.length === 0) return [about, nothing("No item of the queries used lately stands outside its list.")];
  const head = ["Query", "Item", "Promised", "Relevance", "Shown", "Exposure", "Rank"];
  return [
    about,
    h("table", {}, [
      h("thead", {}, h("tr", {}, head.map((name, i) => h("th", { scope: "col", class: column(i) }, name)))),
      h("tbody", {}, insights.buried.slice(0, 10).map(buriedRow)),
    ]),
  ];
}

const column = (i) => (i < 2 ? "name" : i === 3 || i === 5 ? "number wide-only" : "number");

function buriedRow(item) {
  const cells = [
    h("a", { href: `#/queries/${encodeURIComponent(item.query)}`, title: item.query }, item.query),
    h("span", { title: item.item }, item.item),
    decimal(item.prior),
    decimal(item.relevance),
    count(item.shown),
    decimal(item.exposure, 1),
    count(item.rank_by_relevance),
  ];
  return h("tr", {}, cells.map((cell, i) => h("td", { class: column(i) }, cell)));
}

// --- shadow mode -------------------------------------------------------------------------------

export function shadow({ insights }) {
  const { shadow: seen, k } = insights;
  const about = note("Your own order is served. This is what EBRank would have done instead.");
  if (seen.rankings === 0) return [about, nothing("No list was compared yet. Send your order as items of POST /v1/rank.")];
  const facts = [
    ["Lists compared", count(seen.rankings)],
    ["In another order", percent(seen.different)],
    [`Same items in the top ${k}`, percent(seen.overlap)],
    ["Expected clicks gained per list", `${seen.gain >= 0 ? "+" : "−"}${decimal(Math.abs(seen.gain), 3)}`],
    ["Slots of new items", `${percent(seen.new_items)} against ${percent(seen.served_new_items)}`],
  ];
  const pairs = facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  return [about, h("dl", { class: "facts" }, pairs)];
}
