/** What exploration is worth: each panel takes the data and a width in pixels, and returns elements. */

import { lostShare, newShare, settled, telling } from "./buckets.js";
import { bar, line, scatter } from "./charts.js";
import { h } from "./dom.js";
import { nothing } from "./empty.js";
import { ages, count, counted, decimal, duration, half, percent, rate, ratio } from "./format.js";
import { note, overTime, quiet, silence } from "./over_time.js";
import { table } from "./tables.js";

export function newAgainstOld(data, width) {
  const { insights, buckets, words } = data;
  const { coverage } = insights;
  const about = note(
    `Share of items that entered less than ${duration(insights.new_seconds)} before. `,
    coverage.candidates === 0
      ? ""
      : `They are ${count(coverage.new)} of ${counted(coverage.candidates, "candidate")} now: the fair share, if all were treated alike.`,
  );
  if (quiet(buckets)) return [about, nothing(silence(words))];
  const telling = settled(insights, buckets);
  if (telling.length === 0) return [about, nothing(allNew(insights))];
  const shares = [
    { name: "exposure", tone: "accent", of: (b) => newShare([b], "exposure") },
    { name: "clicks", tone: "ink", dashed: true, of: (b) => newShare([b], "clicks") },
  ];
  const fair = ratio(coverage.new, coverage.candidates);
  const references = fair === null ? [] : [{ name: "fair share now", value: fair }];
  return [about, overTime(width, data, telling, shares, percent, "New items' share of exposure and clicks", { references })];
}

function allNew({ new_seconds: seconds, now, first_item: first, bucket_seconds: width }) {
  const start = width * Math.ceil((first + seconds) / width); // of the first bucket that is shown
  const left = Math.max(1, Math.ceil(start + Math.min(width, telling(width)) - now));
  return `At first all items are new. Their share is known in ${duration(left)}.`;
}

export function cost(data, width) {
  const { insights, buckets, words } = data;
  const { exploration } = insights;
  const about = note(
    `Clicks lost, by expectation, against the order by relevance alone: ${rate(exploration.cost)} in ${words} `,
    `for ${counted(exploration.explored, "explored slot")}, in which ${counted(exploration.found, "item")} `,
    `${exploration.found === 1 ? "was" : "were"} found.`,
  );
  if (quiet(buckets)) return [about, nothing(silence(words))];
  if (lostShare(buckets) === null) {
    return [about, nothing(`No click was reported in ${words}. POST /v1/feedback reports some.`)];
  }
  const lost = [{ name: "lost", tone: "accent", of: (bucket) => lostShare([bucket]) }];
  return [about, overTime(width, data, buckets, lost, percent, "Share of expected clicks lost to exploration")];
}

// --- waiting -----------------------------------------------------------------------------------

export function waiting({ insights }, width) {
  const { first_shown: first, top_k: top } = insights.waiting;
  const about = note(
    "From entering to the first impression, and to a place in the list by relevance alone. ",
    `${half(first.median, "were shown")} `,
    half(top.median, "reached a place by relevance"),
  );
  if (first.happened === 0) return [about, nothing("No item was shown since it entered.")];
  const end = Math.max(10, 1 + Math.max(...first.seconds, ...top.seconds)); // waits below 1 s are a step to be seen
  // Seconds and days on one axis: log(1 + seconds).
  const x = Array.from({ length: 81 }, (_, i) => (Math.log1p(end) * i) / 80);
  const share = (curve) => x.map((place) => 1 - stillWaiting(curve, Math.expm1(place) * (1 + 1e-9)));
  const chart = line(width, {
    x,
    ticksX: ages(end, width).map(({ seconds }) => Math.log1p(seconds)),
    series: [
      { name: "shown", tone: "accent", values: share(first) },
      { name: "by relevance", tone: "ink", dashed: true, values: share(top) },
    ],
    formatX: (place) => (place === 0 ? "0" : duration(Math.expm1(place))),
    formatY: percent,
    label: "Share of items that were shown, or reached a place by relevance, within a time",
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

// --- the prior ---------------------------------------------------------------------------------

export function calibration({ insights }, width) {
  const about = note("Items grouped by what their features predict: is it what users found? On the diagonal, it is.");
  if (insights.calibration.length === 0) return [about, nothing("No item was seen often enough yet.")];
  const points = insights.calibration.map(({ predicted, observed, rows }) => ({
    x: predicted,
    y: observed,
    size: rows,
    tip: `${counted(rows, "item")}: predicted ${decimal(predicted)}, found ${decimal(observed)}`,
  }));
  const label = `Calibration of the prior. ${points.map((point) => point.tip).join("; ")}`;
  return [about, scatter(width, { points, format: decimal, nameX: "predicted", nameY: "found", label, height: 180 })];
}

const MOST_FEATURES = 12;

export function features({ insights }) {
  const all = insights.features;
  const about = note(
    "Each feature’s share in what sets items apart before anybody has clicked them: how far scores move with it. ",
    "The prior learned it from clicks.",
  );
  if (all.length === 0) return [about, nothing("Features count from the first training on.")];
  const columns = [
    ["Feature", "name", (feature) => h("span", { title: feature.name }, named(feature))],
    ["Trust", "bars", ({ share }) => bar(share)],
    ["Share", "number", ({ share }) => percent(share)],
    ["In a word", "", ({ share }) => h("span", { class: trusted(share, all) ? "tag" : "tag quiet" }, verdict(share, all))],
  ];
  const rest = all.slice(MOST_FEATURES);
  const others = rest.reduce((sum, { share }) => sum + share, 0);
  const more = `${counted(rest.length, "other feature")}: ${percent(others)} in all. GET /v1/insights has them.`;
  return [about, table(columns, all.slice(0, MOST_FEATURES)), rest.length ? h("p", { class: "small soft more" }, more) : null];
}

function named({ name, columns }) {
  if (columns > 1) return `${name}, ${counted(columns, "column")}`;
  return /^\d+$/.test(name) ? `feature ${name}` : name;
}

/** Trusted: at least the share that each would have if all were trusted alike; ignored: a tenth of it or less. */
const trusted = (share, all) => share * all.length >= 1;

export function verdict(share, all) {
  if (trusted(share, all)) return "trusted";
  return share * all.length <= 0.1 ? "ignored" : "a little";
}
