/** The newest items: where they stand as time goes by, and where features or clicks alone would have them. */

import { h } from "./dom.js";
import { nothing } from "./empty.js";
import { counted, duration } from "./format.js";
import { ranks } from "./ranks.js";
import { highest } from "./scale.js";

const ABOUT = [
  "By features alone: the same candidates by the prior, which learned from the clicks that exploration got. ",
  "By clicks alone: the same candidates by clicks per impression, weighted by rank. ",
  "Clicks that an item got here count there only if that order would have shown it, too.",
];

/** What became of arrivals, in numbers; by features alone only once something was learned of them. */
export function arrivalCounts({ arrivals, k, model }) {
  const many = (which) => arrivals.filter(which).length;
  return {
    all: arrivals.length,
    listed: many(({ ranks: served }) => Math.min(...served) <= k),
    holds: many(({ holds }) => holds),
    byFeatures: model === 0 ? null : many(({ holds_by_features: holds }) => holds),
    byClicks: many(({ holds_by_clicks: holds }) => holds),
  };
}

export function newest({ insights }, width) {
  const { arrivals, k } = insights;
  if (arrivals.length === 0) {
    const none = "No item has entered a query that users had seen, since this server started. PUT /v1/queries/{query}/items adds one.";
    return [nothing(none)];
  }
  const { listed, holds, byFeatures, byClicks, all } = arrivalCounts(insights);
  const last = highest([k + 1, ...arrivals.flatMap((one) => [...one.ranks, ...one.ranks_by_features, ...one.ranks_by_clicks])]);
  const end = highest([10, ...arrivals.map((one) => one.seconds.at(-1))]);
  const each = width >= 840 ? Math.floor((width - 48) / 3) : width;
  const third = (title, field, held, drawn = arrivals) =>
    ranks(each, {
      lines: lines(drawn, field, held),
      k,
      last,
      end,
      caption: title,
      label: `${title} of ${counted(all, "item")} in the top ${k}: rank by time since arrival`,
    });
  return [
    h("p", { class: "note" }, [
      `Rank by time since arrival of the last ${counted(all, "item")} that entered a query in use. `,
      h("span", { class: "dash accent", "aria-hidden": "true" }),
      `holds its place in the top ${k}: there at every look in the second half of its age, and as served for its relevance; `,
      h("span", { class: "dash quiet", "aria-hidden": "true" }),
      "does not. ",
      ...ABOUT,
    ]),
    h("div", { class: "pair" }, [
      third(`As served: ${listed} tried, ${holds} hold it`, "ranks", "holds"),
      byFeatures === null
        ? third("By features alone: nothing learned yet", "ranks_by_features", "holds_by_features", [])
        : third(`By features alone: ${byFeatures} hold it`, "ranks_by_features", "holds_by_features"),
      third(`By clicks alone: ${byClicks} hold it`, "ranks_by_clicks", "holds_by_clicks"),
    ]),
  ];
}

/** One line an item; those that hold their place are drawn last, above the others. */
function lines(arrivals, field, held) {
  return arrivals
    .map((one) => ({
      seconds: one.seconds,
      ranks: one[field],
      tone: one[held] ? "accent" : "quiet",
      tip: `${one.item} · ${one.query}: rank ${one[field].at(-1)} after ${duration(one.seconds.at(-1))}`,
    }))
    .sort((a, b) => (a.tone === "accent") - (b.tone === "accent"));
}
