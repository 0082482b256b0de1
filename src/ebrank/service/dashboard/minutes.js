/** The last hour as one record a minute, without holes. */

import { ratio } from "./format.js";

const EMPTY = {
  rankings: 0,
  clicks: 0,
  exposure_new: 0,
  exposure_old: 0,
  clicks_new: 0,
  clicks_old: 0,
  exploration_cost: 0,
  explored: 0,
  latency_p50_ms: null,
  latency_p99_ms: null,
};

/**
 * Return the minutes of the last hour since the first with traffic, each with `seconds`, how much of
 * it is over. The running minute joins when it is long enough to tell something.
 */
export function lastHour({ now, minutes }) {
  const known = new Map(minutes.map((minute) => [minute.start, minute]));
  const end = 60 * Math.floor(now / 60);
  const first = minutes.length ? minutes[0].start : end;
  const result = [];
  for (let start = Math.max(first, end - 3540); start <= end; start += 60) {
    result.push({ ...EMPTY, start, ...known.get(start), seconds: Math.min(60, Math.max(1, now - start)) });
  }
  return result.length > 1 && result.at(-1).seconds < 10 ? result.slice(0, -1) : result;
}

/**
 * Return the minutes in which new items can be told from old ones: those that began when there had
 * been items for `new_seconds`. Before, all of them are new.
 */
export function settled({ first_item: first, new_seconds: seconds }, minutes) {
  return first === null ? minutes : minutes.filter(({ start }) => start >= first + seconds);
}

/** Return the share of the clicks one could expect that exploration gave up; null before any click. */
export function lostShare(minutes) {
  const [lost, clicks] = [sum(minutes, "exploration_cost"), sum(minutes, "clicks")];
  return clicks === 0 ? null : ratio(lost, lost + clicks);
}

/** Return the sum of a field. */
export function sum(minutes, field) {
  return minutes.reduce((total, minute) => total + minute[field], 0);
}
