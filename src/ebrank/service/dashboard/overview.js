/** The first view: are new items found, and what does it cost? */

import { h, patch } from "./dom.js";
import { firstSteps } from "./empty.js";
import { count, counted, duration, milliseconds, percent, rate, ratio, wait } from "./format.js";
import { lastHour, sum } from "./minutes.js";
import { modelsPanel } from "./models.js";
import * as panels from "./panels.js";
import { spark } from "./charts.js";

const ALL = [
  { id: "shadow", title: "Shadow mode", draw: panels.shadow, wide: true },
  { id: "new", title: "New against old", draw: panels.newAgainstOld },
  { id: "waiting", title: "How long new items wait", draw: panels.waiting },
  { id: "cost", title: "What exploration costs", draw: panels.cost },
  { id: "calibration", title: "Does the prior keep its promises?", draw: panels.calibration },
  { id: "buried", title: "Promising, and little shown", draw: panels.buried, wide: true },
  { id: "traffic", title: "Traffic", draw: panels.traffic },
  { id: "latency", title: "Latency of rankings", draw: panels.latency },
  { id: "models", title: "Models and training", draw: modelsPanel, wide: true },
];

export function overview(root) {
  return {
    title: "Overview",
    head,
    async load(get) {
      const insights = await get("v1/insights");
      const queries = [...new Set(insights.buried.map((item) => item.query))];
      return { insights, minutes: lastHour(insights), queries };
    },
    render: (data) => render(root, data),
  };
}

function head() {
  return [h("h1", { tabindex: "-1" }, "Are new items found, and what does it cost?")];
}

function render(root, data) {
  const { insights } = data;
  const empty = insights.totals.items === 0;
  const drawn = empty ? ALL.filter(({ id }) => id === "models") : ALL;
  patch(
    root,
    head(),
    h("p", { class: "lead" }, empty ? "Nothing is known yet." : answer(data)),
    empty ? firstSteps() : h("section", { class: "tiles", "aria-label": "At a glance" }, tiles(data)),
    h("div", { class: "panels" }, panelsOf(drawn, data, root)),
  );
}

/** Panels with their charts, as wide as they will be. */
function panelsOf(drawn, data, root) {
  const inner = root.clientWidth - 2 * parseFloat(getComputedStyle(root).paddingLeft);
  const narrow = matchMedia("(max-width: 900px)").matches;
  const padding = matchMedia("(max-width: 600px)").matches ? 26 : 34;
  return drawn
    .filter(({ id }) => id !== "shadow" || data.insights.shadow !== null)
    .map(({ id, title, draw, wide }) => {
      const width = (wide || narrow ? inner : (inner - 16) / 2) - padding;
      return h("section", { class: wide ? "panel wide" : "panel", id: `panel-${id}`, "aria-labelledby": `title-${id}` }, [
        h("header", {}, h("h2", { id: `title-${id}` }, title)),
        draw(data, Math.floor(width)),
      ]);
    });
}

function answer({ insights, minutes }) {
  const clicks = sum(minutes, "clicks");
  const [exposed, all] = [sum(minutes, "exposure_new"), sum(minutes, "exposure_old")];
  if (exposed + all === 0) {
    return `${counted(insights.totals.items, "item")} wait for users: no list was served in the last hour.`;
  }
  const strong = (text) => h("strong", {}, text);
  const lost = sum(minutes, "exploration_cost");
  return [
    "In the last hour, items that entered less than ",
    `${duration(insights.new_seconds)} before had `,
    strong(percent(exposed / (exposed + all))),
    " of the exposure and ",
    strong(percent(ratio(sum(minutes, "clicks_new"), clicks))),
    " of the clicks. Trying what is promising cost ",
    strong(percent(ratio(lost, lost + clicks))),
    " of the clicks one could expect. It has found ",
    strong(counted(insights.exploration.found, "item")),
    ` that now ${insights.exploration.found === 1 ? "stands" : "stand"} in the top ${insights.k}.`,
  ];
}

function tiles({ insights, minutes }) {
  const share = minutes.map((m) => ratio(m.exposure_new, m.exposure_new + m.exposure_old));
  const { first_shown: first, top_k: top } = insights.waiting;
  const latest = minutes.findLast((m) => m.seconds >= 20) ?? minutes.at(-1);
  const lost = sum(minutes, "exploration_cost");
  return [
    tile(
      "New items' share of exposure, now",
      percent(share.findLast((value) => value !== null) ?? null),
      `of clicks ${percent(ratio(latest.clicks_new, latest.clicks_new + latest.clicks_old))}`,
      spark(share, { tone: "accent" }),
    ),
    tile(
      "Wait for the first impression",
      wait(first.median),
      `median; ${wait(top.median)} to earn its place`,
    ),
    tile(
      "Clicks given up to explore, last hour",
      percent(ratio(lost, lost + sum(minutes, "clicks"))),
      `${counted(insights.exploration.found, "item")} found in ${count(insights.exploration.explored)} slots`,
    ),
    tile(
      "Rankings per second, now",
      rate(latest.rankings / latest.seconds),
      `p50 ${milliseconds(latest.latency_p50_ms)}, p99 ${milliseconds(latest.latency_p99_ms)}`,
      spark(minutes.map((m) => m.rankings / m.seconds)),
    ),
  ];
}

function tile(name, figure, note, picture = null) {
  return h("div", { class: "tile" }, [
    h("p", { class: "small soft" }, name),
    h("p", { class: "figure" }, figure),
    picture,
    h("p", { class: "small soft" }, note),
  ]);
}
