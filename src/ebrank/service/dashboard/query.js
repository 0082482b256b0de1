/** The view of one query: the belief about each of its items, and where it comes from. */

import { Refused } from "./api.js";
import { density } from "./charts.js";
import { h, patch } from "./dom.js";
import { nothing, putLine } from "./empty.js";
import { between, count, counted, decimal, signed } from "./format.js";
import { highest } from "./scale.js";

const MOST = 100; // rows that are drawn

export function queryView(root, name) {
  return {
    title: name,
    head: () => head(name),
    async load(get) {
      try {
        return { state: await whole(get, `v1/queries/${encodeURIComponent(name)}?density=true`), now: Date.now() / 1000 };
      } catch (problem) {
        if (problem instanceof Refused && problem.status === 404) return { state: null };
        throw problem;
      }
    },
    render: ({ state, now }) => patch(root, head(name), content(name, state, now)),
  };
}

/** A query with all of its items; a large one comes in parts. */
async function whole(get, path) {
  const state = await get(path);
  for (let cursor = state.next_cursor; cursor !== null; ) {
    const part = await get(`${path}&cursor=${cursor}`);
    state.items.push(...part.items);
    state.withdrawn.push(...part.withdrawn);
    cursor = part.next_cursor;
  }
  return state;
}

function head(name) {
  return [h("a", { class: "back", href: "#/" }, "← Overview"), h("h1", { tabindex: "-1" }, name)];
}

function content(name, state, now) {
  if (state === null || state.items.length === 0) {
    const reason = state === null ? "This query is not known." : "This query has no candidates now.";
    const hint = nothing("The features are those of your other items.");
    return [h("p", { class: "lead" }, `${reason} Give it items:`), putLine(name), hint];
  }
  const best = [...state.items].sort((a, b) => a.rank - b.rank);
  const shown = best.slice(0, MOST);
  const left = best.length - shown.length;
  return [
    h("p", { class: "lead" }, summary(state, now)),
    h("div", { class: "panels" }, h("section", { class: "panel wide" }, [
      key(shown.some(({ relevance }) => relevance > 1), shown.some(shares)),
      table(shown, state.k, now),
      left > 0 ? h("p", { class: "small soft more" }, `${counted(left, "item")} further down are left out.`) : null,
    ])),
  ];
}

function summary({ items, withdrawn, model, most_buried: buried }, now) {
  const unseen = items.filter((item) => item.shown === 0).length;
  const newest = Math.max(...items.map((item) => item.entered));
  return [
    `${counted(items.length, "candidate")}, the newest entered ${between(newest, now)} ago; `,
    unseen === 0 ? "all have been shown. " : `${count(unseen)} nobody has seen. `,
    withdrawn.length ? `${count(withdrawn.length)} withdrawn. ` : "",
    `Prior: model ${model}. `,
    buried.length ? ["Most promising of those little shown: ", h("strong", {}, buried[0]), "."] : "",
  ];
}

/** Whether other queries move the prior of an item. */
function shares({ other_queries: queries }) {
  return queries !== undefined;
}

function key(above, shared) {
  return h("p", { class: "note" }, [
    h("span", { class: "swatch prior", "aria-hidden": "true" }),
    shared ? "the prediction of its features and other queries; " : "the prediction of its features; ",
    h("span", { class: "swatch posterior", "aria-hidden": "true" }),
    "the belief after its clicks, with the 90 % interval below; then the score: ",
    h("span", { class: "swatch relevance", "aria-hidden": "true" }),
    "relevance plus ",
    h("span", { class: "swatch bonus", "aria-hidden": "true" }),
    "the bonus for what can be learned. In the order in which they would be served now.",
    above ? " An arrow: an estimate above 1, from more clicks than the exposure explains. It sorts, but is no probability." : "",
  ]);
}

const HEAD = [
  ["", "number", "Rank"],
  ["Item", "name wide-only"],
  ["Relevance", "picture"],
  ["", "number", "Relevance"],
  ["Shown", "number"],
  ["Clicks", "number"],
  ["Exposure", "number wide-only"],
  ["Bonus", "number wide-only"],
  ["Here for", "number wide-only"],
];
const ELSEWHERE = ["By other queries", "number wide-only"];

function table(items, k, now) {
  const end = Math.min(1, 1.05 * highest(items.flatMap((item) => [item.interval[1], Math.min(1, item.score)])));
  const head = items.some(shares) ? [...HEAD, ELSEWHERE] : HEAD;
  return h("table", { class: "items" }, [
    h("thead", {}, h("tr", {}, head.map((column, i) => heading(column, i === 2 ? axis(end) : column[0])))),
    h("tbody", {}, items.flatMap((item, i) => [i === k ? cutoff(k, head) : null, row(item, end, now, head)])),
  ]);
}

/** The line below the last item of a list. */
function cutoff(k, head) {
  return h("tr", { class: "cut" }, h("td", { colspan: head.length }, `A list of ${count(k)} ends here`));
}

function heading([, kind, label], content) {
  return h("th", { scope: "col", class: kind, "aria-label": label }, content);
}

function axis(end) {
  return ["Relevance ", h("span", { class: "soft" }, `0 to ${decimal(end)}`)];
}

/** How far other queries move an item's prior, and how many they are; nothing if there is none. */
function moved({ elsewhere, other_queries: queries }) {
  return queries ? `${signed(elsewhere)} from ${count(queries)}` : "";
}

function spoken(item) {
  const { relevance, interval: [low, high], prior, bonus } = item;
  const interval = `90 % interval ${decimal(low)} to ${decimal(high)}`;
  const others = moved(item) && `, ${moved(item)} other ${item.other_queries === 1 ? "query" : "queries"}`;
  return `relevance ${decimal(relevance)}, ${interval}, prior ${decimal(prior)}${others}, bonus ${decimal(bonus, 3)}`;
}

function row(item, end, now, head) {
  const picture = density({
    ...item.density,
    interval: item.interval,
    relevance: item.relevance,
    bonus: item.bonus,
    end,
    label: spoken(item),
  });
  const cells = [
    count(item.rank),
    h("span", { title: item.id }, item.id),
    [h("div", { class: "caption" }, item.id), picture],
    decimal(item.relevance),
    count(item.shown),
    count(item.clicks),
    decimal(item.exposure, 1),
    decimal(item.bonus, 3),
    between(item.entered, now),
    moved(item),
  ];
  return h("tr", {}, head.map(([, kind], i) => h("td", { class: kind }, cells[i])));
}
