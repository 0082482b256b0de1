/** The first view: are new items found, what does it cost, and is the service well? */

import { arrivalCounts, newest } from "./arrivals.js";
import { filled, lostShare, newShare, settled, sum } from "./buckets.js";
import { spark } from "./charts.js";
import { h, patch } from "./dom.js";
import { firstSteps } from "./empty.js";
import { experiment } from "./experiment.js";
import { fleet } from "./fleet.js";
import { count, counted, duration, milliseconds, percent, rate, wait } from "./format.js";
import * as health from "./health.js";
import { modelsPanel, priorNotice } from "./models.js";
import * as panels from "./panels.js";
import { queryLink, table } from "./tables.js";
import * as users from "./users.js";

/** Each panel: its id, its title, what draws it; `wide`; `still` while pointed at; `when` it is there. */
const HERO = [{ id: "newest", title: "New items get their chance", draw: newest, wide: true, still: true }];
const GROUPS = [
  {
    title: "Is it worth it?",
    panels: [
      { id: "experiment", title: "Experiment", draw: experiment, wide: true, still: true, when: ({ experiment }) => experiment !== null },
      { id: "new", title: "New against old", draw: panels.newAgainstOld },
      { id: "waiting", title: "How long new items wait", draw: panels.waiting },
      { id: "cost", title: "What exploration costs", draw: panels.cost },
      { id: "calibration", title: "Is the prior calibrated?", draw: panels.calibration },
      { id: "features", title: "How much each feature counts", draw: panels.features, wide: true, still: true },
    ],
  },
  {
    title: "What do users find?",
    panels: [
      { id: "clicks", title: "Clicks per list", draw: users.clicks },
      { id: "examination", title: "How far users look", draw: users.examination },
      { id: "found", title: "Found by exploration", draw: users.found, still: true },
      { id: "top", title: "Queries asked most", draw: users.topQueries, still: true },
      { id: "buried", title: "Promising, and little shown", draw: users.buried, wide: true, still: true },
    ],
  },
  {
    title: "Is the service well?",
    panels: [
      { id: "traffic", title: "Traffic", draw: health.traffic },
      { id: "latency", title: "Latency of rankings", draw: health.latency },
      { id: "errors", title: "Answers that were errors", draw: health.errors },
      { id: "feedback", title: "Feedback", draw: health.feedback },
      { id: "server", title: "Server", draw: health.server, wide: true },
      { id: "fleet", title: "Servers", draw: fleet, wide: true, when: ({ servers }) => servers.length > 1 },
      { id: "models", title: "Models and training", draw: modelsPanel, wide: true },
    ],
  },
];

const MOST_STORED = 20; // queries of an imported store

const RANGES = [
  { hours: 1, name: "1 h", words: "the last hour", address: "#/" },
  { hours: 24, name: "24 h", words: "the last 24 hours", address: "#/24h" },
  { hours: 168, name: "7 d", words: "the last 7 days", address: "#/7d" },
];

/** Return the hours that an address such as "#/24h" asks for; undefined if it is no such address. */
export function hoursOf(hash) {
  return RANGES.find(({ address }) => address === (hash || "#/"))?.hours;
}

export function overview(root, hours) {
  const held = new Map(); // what is drawn in panels that stand still, by id
  const { words } = RANGES.find((range) => range.hours === hours);
  return {
    title: "Overview",
    head: () => head(hours),
    async load(get) {
      const insights = await get(`v1/insights?hours=${hours}`);
      const stored = unused(insights) ? (await get(`v1/queries?limit=${MOST_STORED}`)).queries : [];
      return { insights, buckets: filled(insights), words, stored };
    },
    render: (data) => render(root, data, held),
  };
}

function head(hours) {
  const links = RANGES.map((range) =>
    h("a", { href: range.address, "aria-current": range.hours === hours ? "true" : null }, range.name),
  );
  return [
    h("div", { class: "headline" }, [
      h("h1", { tabindex: "-1" }, "Are new items found, and what does it cost?"),
      h("nav", { class: "ranges", "aria-label": "Time range" }, links),
    ]),
  ];
}

function render(root, data, held) {
  const { insights } = data;
  if (unused(insights)) {
    const some = GROUPS.at(-1).panels.filter(({ id }) => id === "server" || id === "models");
    const below = h("div", { class: "panels" }, panelsOf(some, data, root, held, "h2"));
    return patch(root, head(insights.hours), nothingYet({ ...insights, stored: data.stored }), below);
  }
  const shown = ({ when = () => true }) => when(insights);
  patch(
    root,
    head(insights.hours),
    h("p", { class: "lead" }, answer(data)),
    priorNotice(insights),
    h("div", { class: "panels" }, panelsOf(HERO, data, root, held, "h2")),
    h("section", { class: "tiles", "aria-label": "At a glance" }, tiles(data)),
    GROUPS.map((group) => [
      h("h2", { class: "group" }, group.title),
      h("div", { class: "panels" }, panelsOf(group.panels.filter(shown), data, root, held)),
    ]),
  );
}

/** Whether nothing came by the API yet; an import does not count there. */
const unused = ({ totals }) => totals.items === 0 && totals.rankings === 0;

function nothingYet({ demo, stored }) {
  if (demo) return h("p", { class: "lead" }, "The simulated users are on their way. The first items are here in a few seconds.");
  if (stored.length === 0) return [h("p", { class: "lead" }, "Nothing is known yet."), firstSteps()];
  const all = stored.length < MOST_STORED;
  const whole = `${counted(stored.length, "query", "queries")} with ${counted(sum(stored, "items"), "item")}. `;
  return [
    h("p", { class: "lead" }, "This store was filled from elsewhere, with the history of its items; no list was served yet."),
    h("section", { class: "panel start" }, [
      h("header", {}, h("h2", {}, "What came in")),
      h("p", { class: "note" }, [all ? whole : `The first ${MOST_STORED} queries by name. `, h("a", { href: "#/queries" }, "All queries")]),
      table([["Query", "name", ({ query }) => queryLink(query)], ["Items", "number", ({ items }) => count(items)]], stored),
    ]),
  ];
}

/** Panels with their charts, as wide as they will be. */
function panelsOf(listed, data, root, held, heading = "h3") {
  const inner = root.clientWidth - 2 * parseFloat(getComputedStyle(root).paddingLeft);
  const narrow = matchMedia("(max-width: 900px)").matches;
  const padding = matchMedia("(max-width: 600px)").matches ? 26 : 34;
  return listed.map(({ id, title, draw, wide, still }) => {
    const width = (wide || narrow ? inner : (inner - 16) / 2) - padding;
    const drawn = still ? whileStill(id, data, held) : data;
    return h("section", { class: wide ? "panel wide" : "panel", id: `panel-${id}`, "aria-labelledby": `title-${id}` }, [
      h("header", {}, h(heading, { id: `title-${id}` }, title)),
      draw(drawn, Math.max(100, Math.floor(width))),
    ]);
  });
}

/** What a panel draws: the latest, but not while somebody points at it or works in it. */
function whileStill(id, data, held) {
  const panel = document.getElementById(`panel-${id}`);
  if (!panel?.matches(":hover, :focus-within") || !held.has(id)) held.set(id, data);
  return held.get(id);
}

// --- in a sentence, and at a glance ------------------------------------------------------------

function answer({ insights, buckets, words }) {
  if (sum(buckets, "rankings") === 0) {
    return `${counted(insights.totals.items, "item")} wait for users: no list was served in ${words}.`;
  }
  const { found } = insights.exploration;
  return [
    arrived(insights),
    price(lostShare(buckets), words),
    ` In ${words}, exploration found `,
    strong(counted(found, "item")),
    ": tried at first, listed for their relevance since.",
  ];
}

const strong = (text) => h("strong", {}, text);

function arrived(insights) {
  const { all, listed, holds, byFeatures, byClicks } = arrivalCounts(insights);
  if (all === 0) return "No item has arrived lately. ";
  return [
    "Of the last ",
    strong(counted(all, "item")),
    " that arrived, ",
    strong(listed),
    ` made the top ${insights.k} and `,
    strong(holds),
    holds === 1 ? " holds its place; " : " hold their place; ",
    byFeatures === null ? null : ["by features alone ", strong(byFeatures), " would, "],
    "by clicks alone ",
    strong(byClicks),
    byFeatures === null ? " would. " : ". ",
  ];
}

function price(lost, words) {
  if (lost === null) return `No click was reported in ${words}, so what exploration costs is not known.`;
  return ["Trying what is promising cost ", strong(percent(lost)), ` of the clicks one could expect in ${words}.`];
}

function tiles({ insights, buckets, words }) {
  const now = buckets.at(-1); // what the legends of charts tell, too
  const { latency_p50_ms: p50, latency_p99_ms: p99 } = now;
  const { first_shown: first, top_k: top } = insights.waiting;
  const { found, explored } = insights.exploration;
  return [
    shareTile(insights, settled(insights, buckets)),
    tile("Wait for the first impression", wait(first.median), waits(first, top)),
    tile(
      `Clicks given up to explore, ${words}`,
      percent(lostShare(buckets)),
      `${counted(found, "item")} found in ${counted(explored, "slot")}`,
      spark(buckets.map((bucket) => lostShare([bucket]))),
    ),
    tile(
      `Rankings per second, last ${duration(now.seconds)}`,
      rate(now.rankings / now.seconds),
      p50 === null ? "no list just now" : `p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}`,
      spark(buckets.map((bucket) => bucket.rankings / bucket.seconds)),
    ),
  ];
}

function waits(first, top) {
  if (first.median === null) return "fewer than half were shown so far";
  return top.median === null ? "median; most have no place by relevance yet" : `median; ${wait(top.median)} to a place by relevance`;
}

function shareTile({ new_seconds: seconds }, buckets) {
  const name = "New items' share of exposure, latest";
  const share = buckets.map((bucket) => newShare([bucket], "exposure"));
  const last = share.findLastIndex((value) => value !== null);
  if (last < 0) return tile(name, percent(null), `known when the first are ${duration(seconds)} old`);
  const clicks = newShare([buckets[last]], "clicks");
  const note = clicks === null ? "no clicks yet" : `of clicks ${percent(clicks)}`;
  return tile(name, percent(share[last]), note, spark(share, { tone: "accent" }));
}

function tile(name, figure, note, picture = null) {
  return h("div", { class: "tile" }, [
    h("p", { class: "small soft" }, name),
    h("p", { class: "figure" }, figure),
    picture,
    h("p", { class: "small soft" }, note),
  ]);
}
