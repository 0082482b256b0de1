/** The newest items: where they stand as time goes by, and where clicks alone would have them. */

import { h } from "./dom.js";
import { nothing } from "./empty.js";
import { counted, duration } from "./format.js";
import { ranks } from "./ranks.js";
import { highest } from "./scale.js";

const ABOUT = [
  "By clicks alone: the same candidates by clicks per impression, weighted by rank. ",
  "Clicks that an item got here count there only if that order would have shown it, too.",
];

/** What became of arrivals, in numbers. */
export function arrivalCounts({ arrivals, k }) {
  const made = (field) => arrivals.filter((one) => Math.min(...one[field]) <= k).length;
  return {
    all: arrivals.length,
    listed: made("ranks"),
    byClicks: made("ranks_by_clicks"),
    kept: arrivals.filter((one) => one.in_top_k).length,
  };
}

export function newest({ insights }, width) {
  const { arrivals, k, shadow } = insights;
  if (arrivals.length === 0) {
    const none = "No item has entered a query that users had seen, since this server started. PUT /v1/queries/{query}/items adds one.";
    return [nothing(none)];
  }
  const { listed, byClicks, all } = arrivalCounts(insights);
  const last = highest([k + 1, ...arrivals.flatMap((one) => [...one.ranks, ...one.ranks_by_clicks])]);
  const end = highest([10, ...arrivals.map((one) => one.seconds.at(-1))]);
  const beside = width >= 560;
  const each = beside ? Math.floor((width - 24) / 2) : width;
  const half = (title, field, made) =>
    ranks(each, {
      lines: lines(arrivals, field),
      k,
      last,
      end,
      caption: title,
      label: `${title}: rank by time since arrival. ${made} of ${counted(all, "item")} made the top ${k}`,
    });
  return [
    h("p", { class: "note" }, [
      `Rank by time since arrival of the last ${counted(all, "item")} that entered a query in use. `,
      h("span", { class: "dash accent", "aria-hidden": "true" }),
      `stands in the top ${k} for its relevance by now; `,
      h("span", { class: "dash quiet", "aria-hidden": "true" }),
      "does not. ",
      ...ABOUT,
    ]),
    h("div", { class: "pair" }, [
      half(shadow === null ? `As served: ${listed} of ${all} made the top ${k}` : `By EBRank, in shadow: ${listed} of ${all}`, "ranks", listed),
      half(`By clicks alone: ${byClicks} of ${all} would have`, "ranks_by_clicks", byClicks),
    ]),
  ];
}

/** One line an item; those that earned their place are drawn last, above the others. */
function lines(arrivals, field) {
  return arrivals
    .map((one) => ({
      seconds: one.seconds,
      ranks: one[field],
      tone: one.in_top_k ? "accent" : "quiet",
      tip: `${one.item} · ${one.query}: rank ${one[field].at(-1)} after ${duration(one.seconds.at(-1))}`,
    }))
    .sort((a, b) => (a.tone === "accent") - (b.tone === "accent"));
}
