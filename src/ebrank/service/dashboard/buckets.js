/** What happened over time, as one record for each bucket of some seconds, without holes. */

import { ratio } from "./format.js";

const SUMS = [
  ...["rankings", "shown", "clicks", "events", "duplicate", "rejected", "refused", "failed", "starts", "found"],
  ...["exposure_new", "exposure_old", "clicks_new", "clicks_old", "exploration_cost", "explored"],
];
const EMPTY = { ...Object.fromEntries(SUMS.map((name) => [name, 0])), latency_p50_ms: null, latency_p99_ms: null };

/**
 * Return the buckets since the first with traffic, each with `seconds`, how much of it is over. The
 * running one joins when enough of it is to tell something.
 */
export function filled({ now, hours, buckets, bucket_seconds: width }) {
  const known = new Map(buckets.map((bucket) => [bucket.start, bucket]));
  const end = width * Math.floor(now / width);
  const first = (buckets.find(({ rankings, events }) => rankings > 0 || events > 0) ?? { start: end }).start;
  const result = [];
  for (let start = Math.max(first, end - 3600 * hours + width); start <= end; start += width) {
    const seconds = Math.min(width, Math.max(Math.min(1, width), now - start));
    result.push({ ...EMPTY, start, ...known.get(start), seconds });
  }
  return result.length > 1 && result.at(-1).seconds < telling(width) ? result.slice(0, -1) : result;
}

/** Return how many seconds of a bucket must be over. */
export function telling(width) {
  return Math.max(10, width / 6);
}

/**
 * Return the buckets in which new items differ from old ones: those that began when there had
 * been items for `new_seconds`. Before, all of them are new.
 */
export function settled({ first_item: first, new_seconds: seconds }, buckets) {
  return first === null ? buckets : buckets.filter(({ start }) => start >= first + seconds);
}

/** Return the share of the clicks one could expect that exploration gave up; null before any click. */
export function lostShare(buckets) {
  const [lost, clicks] = [sum(buckets, "exploration_cost"), sum(buckets, "clicks")];
  return clicks === 0 ? null : ratio(lost, lost + clicks);
}

/** Return new items' share of "exposure" or "clicks"; null where there were none. */
export function newShare(buckets, what) {
  const [young, old] = [sum(buckets, `${what}_new`), sum(buckets, `${what}_old`)];
  return ratio(young, young + old);
}

/** Return the sum of a field. */
export function sum(buckets, field) {
  return buckets.reduce((total, bucket) => total + bucket[field], 0);
}

/** Return what to mark at the axis of time, as [{x, name}]: models that went live, and starts. */
export function events({ models }, buckets) {
  const [from, to] = [buckets[0].start, buckets.at(-1).start + buckets.at(-1).seconds];
  const live = models.filter(({ activated, created }) => activated && created >= from && created <= to);
  return [
    ...buckets.filter(({ starts }) => starts > 0).map(({ start }) => ({ x: start, name: "start" })),
    ...live.map(({ version, created }) => ({ x: Math.min(created, buckets.at(-1).start), name: `model ${version}` })),
  ];
}
