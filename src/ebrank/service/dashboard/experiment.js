/** The panel of the running experiment: figures of each arm, and differences from the first. */

import { h } from "./dom.js";
import { count, dayAndTime, decimal, percent, signed } from "./format.js";
import { note } from "./over_time.js";
import { table } from "./tables.js";

const METRICS = [
  ["Clicks", "clicks"],
  ["Weighted outcome", "outcome"],
  ["New items found", "found"],
];

export function experiment({ insights }) {
  const { experiment: seen } = insights;
  const about = note(
    `${seen.name}: arms per ${seen.unit}, ${seen.state}, compared since ${dayAndTime(seen.since)}. `,
    "Figures are per list, with 95 % intervals that you may look at every day.",
  );
  const columns = [
    ["Arm", "name", ({ name, policy }) => [name, !policy || policy === name ? null : h("span", { class: "under small soft" }, policy)]],
    ["Share", "number wide-only", ({ share }) => (share === undefined ? "" : percent(share))],
    ["Units", "number wide-only", ({ units }) => (units === undefined ? "" : count(units))],
    ["Lists", "number wide-only", ({ lists }) => (lists === undefined ? "" : count(lists))],
    ...METRICS.map(([title, name]) => [title, "number", (row) => figure(row[name], row.isDifference)]),
  ];
  const rows = seen.arms.flatMap((arm) => [arm, ...differences(arm, seen.arms[0])]);
  const notes = seen.notes.map((text) => h("p", { class: "small soft more" }, text));
  return [about, h("div", { class: "experiment" }, table(columns, rows)), notes];
}

function differences(arm, first) {
  if (arm === first) return [];
  return [{ ...arm.difference, name: `${arm.name} − ${first.name}`, isDifference: true }];
}

/** An estimate above its interval; a difference is marked once its interval excludes 0. */
function figure({ value, low, high }, isDifference = false) {
  const digits = (number) => (isDifference ? signed : decimal)(number, 3);
  const sure = isDifference && low !== null && (low > 0 || high < 0);
  return [
    sure ? h("strong", {}, digits(value)) : digits(value),
    low === null ? null : h("span", { class: "under interval small soft" }, `${digits(low)} to ${digits(high)}`),
  ];
}
