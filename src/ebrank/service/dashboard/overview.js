/** The first view: are new items found, and what does it cost? */

import { h, patch } from "./dom.js";
import { firstSteps } from "./empty.js";
import { counted, duration, milliseconds, percent, rate, ratio, wait } from "./format.js";
import { lastHour, lostShare, settled, sum } from "./minutes.js";
import { modelsPanel, priorNotice } from "./models.js";
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
    priorNotice(insights),
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
  if (sum(minutes, "rankings") === 0) {
    return `${counted(insights.totals.items, "item")} wait for users: no list was served in the last hour.`;
  }
  const { found } = insights.exploration;
  return [
    newItems(insights, settled(insights, minutes)),
    price(lostShare(minutes)),
    " It has found ",
    strong(counted(found, "item")),
    ` that now ${found === 1 ? "stands" : "stand"} in the top ${insights.k}.`,
  ];
}

const strong = (text) => h("strong", {}, text);

function newItems({ new_seconds: seconds }, minutes) {
  if (minutes.length === 0) return `It is too early to tell new items from those that entered ${duration(seconds)} before. `;
  const exposure = newShare(minutes, "exposure");
  if (exposure === null) return "No exposure was counted in the last hour. ";
  const clicks = newShare(minutes, "clicks");
  return [
    `In the last hour, items that entered less than ${duration(seconds)} before had `,
    strong(percent(exposure)),
    " of the exposure",
    clicks === null ? "" : [" and ", strong(percent(clicks)), " of the clicks"],
    ". ",
  ];
}

function price(lost) {
  if (lost === null) return "No click was reported in the last hour, so what exploration costs is not known.";
  return ["Trying what is promising cost ", strong(percent(lost)), " of the clicks one could expect."];
}

/** New items' share of "exposure" or "clicks"; null where there were none. */
function newShare(minutes, what) {
  const [young, old] = [sum(minutes, `${what}_new`), sum(minutes, `${what}_old`)];
  return ratio(young, young + old);
}

function tiles({ insights, minutes }) {
  const latest = minutes.findLast((m) => m.seconds >= 20) ?? minutes.at(-1);
  const { first_shown: first, top_k: top } = insights.waiting;
  const { found, explored } = insights.exploration;
  return [
    shareTile(insights, settled(insights, minutes)),
    tile("Wait for the first impression", wait(first.median), waits(first, top)),
    tile(
      "Clicks given up to explore, last hour",
      percent(lostShare(minutes)),
      `${counted(found, "item")} found in ${counted(explored, "slot")}`,
    ),
    tile(
      "Rankings per second, now",
      rate(latest.rankings / latest.seconds),
      latest.latency_p50_ms === null
        ? "no list in this minute"
        : `p50 ${milliseconds(latest.latency_p50_ms)}, p99 ${milliseconds(latest.latency_p99_ms)}`,
      spark(minutes.map((m) => m.rankings / m.seconds)),
    ),
  ];
}

function waits(first, top) {
  if (first.median === null) return "fewer than half were shown so far";
  return top.median === null ? "median; most have yet to earn a place" : `median; ${wait(top.median)} to earn its place`;
}

function shareTile({ new_seconds: seconds }, minutes) {
  const name = "New items' share of exposure, now";
  const share = minutes.map((minute) => newShare([minute], "exposure"));
  const latest = share.findLastIndex((value) => value !== null);
  if (latest < 0) return tile(name, percent(null), `known when the first are ${duration(seconds)} old`);
  const clicks = newShare([minutes[latest]], "clicks");
  const note = clicks === null ? "no clicks yet" : `of clicks ${percent(clicks)}`;
  return tile(name, percent(share[latest]), note, spark(share, { tone: "accent" }));
}

function tile(name, figure, note, picture = null) {
  return h("div", { class: "tile" }, [
    h("p", { class: "small soft" }, name),
    h("p", { class: "figure" }, figure),
    picture,
    h("p", { class: "small soft" }, note),
  ]);
}
