/** What charts over time share: the axis, its marks, and what to say where there is nothing. */

import { events, sum } from "./buckets.js";
import { line } from "./charts.js";
import { h } from "./dom.js";
import { timesOf } from "./format.js";

export const note = (...text) => h("p", { class: "note" }, text);

export const silence = (words) => `No list was served in ${words}. POST /v1/rank serves one.`;

export const quiet = (buckets) => sum(buckets, "rankings") === 0;

/**
 * Lines over buckets. `series`: [{name, tone, of}], where `of` gives the value of a bucket; `chart`:
 * more for `line`, such as `references`.
 */
export function overTime(width, { insights }, buckets, series, formatY, label, chart = {}) {
  const x = buckets.map((bucket) => bucket.start);
  const drawn = series.map(({ of, ...look }) => ({ ...look, values: buckets.map(of) }));
  const formatX = timesOf(insights.bucket_seconds, insights.hours);
  return line(width, { x, series: drawn, formatX, formatY, label, marks: events(insights, buckets), ...chart });
}
