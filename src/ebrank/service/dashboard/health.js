/** For who is on call: traffic, latency, errors, what became of feedback, and the server itself. */

import { sum } from "./buckets.js";
import { h } from "./dom.js";
import { nothing } from "./empty.js";
import { between, bytes, count, counted, dayAndTime, milliseconds, percent, rate, ratio } from "./format.js";
import { note, overTime, quiet, silence } from "./over_time.js";
import { facts, table } from "./tables.js";

export function traffic(data, width) {
  const { insights, buckets, words } = data;
  const { totals } = insights;
  const about = note(
    `${counted(totals.rankings, "ranking")} and ${counted(totals.clicks, "click")} since the store was made, over `,
    `${counted(totals.items, "item")} that ever entered ${counted(totals.queries, "query", "queries")} by the API.`,
  );
  if (quiet(buckets)) return [about, nothing(silence(words))];
  const flows = [
    { name: "rankings/s", tone: "ink", of: (b) => b.rankings / b.seconds },
    { name: "clicks/s", tone: "accent", dashed: true, of: (b) => b.clicks / b.seconds },
  ];
  return [about, overTime(width, data, buckets, flows, rate, "Rankings and clicks per second")];
}

export function latency(data, width) {
  const { buckets, words } = data;
  const about = note("From the request to the logged list.");
  if (buckets.every((bucket) => bucket.latency_p50_ms === null)) return [about, nothing(silence(words))];
  const times = [
    { name: "p50", tone: "ink", of: (b) => b.latency_p50_ms },
    { name: "p99", tone: "quiet", dashed: true, of: (b) => b.latency_p99_ms },
  ];
  return [about, overTime(width, data, buckets, times, milliseconds, "Median and 99th percentile latency")];
}

export function errors(data, width) {
  const { insights, buckets, words } = data;
  const bad = insights.routes.filter(({ refused, failed }) => refused + failed > 0);
  const all = sum(insights.routes, "answers");
  const failed = sum(insights.routes, "failed");
  const refused = sum(insights.routes, "refused");
  const about = note(
    `Of ${counted(all, "answer")} in ${words}, ${percent(ratio(failed, all) ?? 0)} failed here (5xx), and `,
    `${percent(ratio(refused, all) ?? 0)} were refused for what the caller sent (4xx).`,
  );
  if (bad.length === 0) return [about, nothing("No route answered with an error.")];
  const columns = [
    ["Route", "name", ({ route }) => h("span", { title: route }, route || "no such address")],
    ["Answers", "number wide-only", ({ answers }) => count(answers)],
    ["5xx", "number", (one) => errorShare(one.failed, one.answers)],
    ["4xx", "number", (one) => errorShare(one.refused, one.answers)],
  ];
  const flows = [
    { name: "5xx", tone: "danger", of: (b) => b.failed / b.seconds },
    { name: "4xx", tone: "quiet", dashed: true, of: (b) => b.refused / b.seconds },
  ];
  return [
    about,
    table(columns, bad.slice(0, 8)),
    overTime(width, data, buckets, flows, rate, "Answers that were errors, per second", { height: 120 }),
  ];
}

function errorShare(part, all) {
  return part === 0 ? "0" : `${count(part)} · ${percent(ratio(part, all))}`;
}

export function feedback(data, width) {
  const { insights, buckets, words } = data;
  const { accepted, duplicate, rejected, last } = insights.feedback;
  const reasons = Object.entries(rejected)
    .sort(([, a], [, b]) => b - a)
    .map(([code, events]) => `${count(events)} ${code.replaceAll("_", " ")}${code === "expired" ? " (too late)" : ""}`);
  const about = note(
    last === null ? "No event was accepted yet. " : `The last event came ${between(last, insights.now)} ago. `,
    `Per second below; in ${words} ${counted(accepted, "event")} accepted, ${counted(duplicate, "duplicate")}, `,
    reasons.length === 0 ? "0 rejected." : `rejected ${reasons.join(", ")}.`,
  );
  if (accepted + duplicate + reasons.length === 0) return [about, nothing("POST /v1/feedback reports what users did.")];
  const flows = [
    { name: "accepted", tone: "ink", of: (b) => b.events / b.seconds },
    { name: "duplicate", tone: "quiet", dashed: true, of: (b) => b.duplicate / b.seconds },
    { name: "rejected", tone: "danger", of: (b) => b.rejected / b.seconds },
  ];
  return [about, overTime(width, data, buckets, flows, rate, "Events accepted, duplicate and rejected per second")];
}

export function server({ insights }) {
  const { system, now, totals } = insights;
  const stored = system.store_bytes === null ? "in memory" : bytes(system.store_bytes);
  const about = [
    ["Version", system.version],
    ["Started", `${dayAndTime(system.started)}, ${between(system.started, now)} ago`],
    ["Store", system.free_bytes === null ? stored : `${stored}; ${bytes(system.free_bytes)} free`],
    ["Log", system.log_entries === null ? counted(totals.rankings + totals.events, "entry", "entries") : counted(system.log_entries, "entry", "entries")],
  ];
  return [facts(about), h("p", { class: "note" }, ["Policy: ", h("code", {}, system.policy)])];
}
