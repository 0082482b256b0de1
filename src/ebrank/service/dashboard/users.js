/** What users find: click rates, how far they look, what exploration found, queries, buried items. */

import { line } from "./charts.js";
import { h } from "./dom.js";
import { nothing } from "./empty.js";
import { between, count, counted, decimal, percent, ratio } from "./format.js";
import { note, overTime, quiet, silence } from "./over_time.js";
import { queryLink, table } from "./tables.js";

const UNUSED = "No query was used since this server started.";

export function clicks(data, width) {
  const { insights, buckets, words } = data;
  const { coverage } = insights;
  const about = coverage.candidates === 0 ? note(UNUSED) : note(
    `Of ${counted(coverage.candidates, "candidate")} of the ${counted(coverage.queries, "query", "queries")} used last, `,
    `${percent(ratio(coverage.shown, coverage.candidates))} were ever shown and `,
    `${percent(ratio(coverage.clicked, coverage.candidates))} clicked.`,
  );
  if (quiet(buckets)) return [about, nothing(silence(words))];
  const rates = [
    { name: "per list", tone: "accent", of: (b) => ratio(b.clicks, b.rankings) },
    { name: "per item shown", tone: "ink", dashed: true, of: (b) => ratio(b.clicks, b.shown) },
  ];
  return [about, overTime(width, data, buckets, rates, decimal, "Clicks per list, and per item shown")];
}

export function examination({ insights }, width) {
  const { configured, learned } = insights.examination;
  const about = note(
    "How probable it is that users look at a rank. ",
    learned === null ? "This is as configured; a policy such as auto learns it from clicks." : "Clicks are weighed by what was learned.",
  );
  const x = configured.map((_, i) => i + 1);
  const curves = [
    learned === null ? null : { name: "learned", tone: "accent", values: learned },
    { name: "configured", tone: "quiet", dashed: learned !== null, values: configured },
  ].filter((curve) => curve !== null);
  const label = "Probability that users look at each rank";
  return [about, line(width, { x, series: curves, formatX: (rank) => `rank ${rank}`, formatY: decimal, label, top: 1 })];
}

// --- tables ------------------------------------------------------------------------------------

export function found({ insights }) {
  const { k, now } = insights;
  const about = note(
    `Of the ${counted(insights.totals.found, "item")} found since the store was made, those that stand in the top ${k} for their relevance now, `,
    "in the queries used last; the newest first.",
  );
  if (insights.found.length === 0) return [about, nothing("None yet in the queries used last.")];
  const columns = [
    ["Query", "name", (item) => queryLink(item.query)],
    ["Item", "name", (item) => h("span", { title: item.item }, item.item)],
    ["Clicks", "number", (item) => count(item.clicks)],
    ["Here for", "number", (item) => between(item.entered, now)],
    ["Rank", "number", (item) => count(item.rank_by_relevance)],
  ];
  return [about, table(columns, insights.found.slice(0, 8))];
}

export function topQueries({ insights }) {
  const about = note(`The queries used last, those with most lists first. `, h("a", { href: "#/queries" }, "All queries"));
  if (insights.top_queries.length === 0) return [about, nothing(UNUSED)];
  const columns = [
    ["Query", "name", (one) => queryLink(one.query)],
    ["Lists", "number", (one) => count(one.lists)],
    ["Clicks per list", "number", (one) => decimal(ratio(one.clicks, one.lists))],
    ["Candidates", "number", (one) => count(one.candidates)],
  ];
  return [about, table(columns, insights.top_queries.slice(0, 8))];
}

export function buried({ insights }) {
  const about = note("Items whose features predict a lot and that few users have seen, by query. Open one to see its items.");
  if (insights.buried.length === 0) return [about, nothing("No item of the queries used lately stands outside its list.")];
  const columns = [
    ["Query", "name", (item, i, group) => (i === 0 ? queryLink(item.query) : h("span", { class: "visually-hidden" }, group))],
    ["Item", "name", (item) => h("span", { title: item.item }, item.item)],
    ["Promised", "number", (item) => decimal(item.prior)],
    ["Relevance", "number wide-only", (item) => decimal(item.relevance)],
    ["Shown", "number", (item) => count(item.shown)],
    ["Exposure", "number wide-only", (item) => decimal(item.exposure, 1)],
    ["Rank", "number", (item) => count(item.rank_by_relevance)],
  ];
  return [about, table(columns, insights.buried.slice(0, 10), (item) => item.query)];
}
