/** The panel of models: what was trained, what is active, and the way back. */

import { h } from "./dom.js";
import { between, change, count, dayAndTime, decimal, sentence } from "./format.js";
import { table } from "./tables.js";

export function modelsPanel({ insights }) {
  const { models, training, model: active, now } = insights;
  const versions = models.some(({ version }) => version === 0) ? models : [untrained(active), ...models];
  const newest = versions.toReversed();
  return [
    h("div", { class: "training" }, [
      h("p", { class: "small soft" }, trainingState(training, now)),
      trainButton(training),
    ]),
    table(COLUMNS, newest.slice(0, 10)),
    newest.length > 10 ? h("p", { class: "small soft more" }, `${newest.length - 10} older versions: GET /v1/models`) : null,
  ];
}

const NOTICES = {
  refused: "New models stay off",
  unused: "The active model is not used",
  failing: "Training fails",
};

/** A line that says that lists are not made with what was learned last, why, and since when. */
export function priorNotice({ prior, now }) {
  const what = NOTICES[prior.state];
  if (what === undefined) return null;
  const since = prior.since === null ? "" : ` since ${dayAndTime(prior.since)}, ${between(prior.since, now)} ago`;
  return h("p", { class: "small notice", id: "prior" }, `${what}${since}. ${sentence(comparison(prior.reason))}`);
}

const COLUMNS = [
  ["Model", "", ({ version }) => String(version)],
  ["Made", "", ({ version, created }) => (version === 0 ? "before any training" : dayAndTime(created))],
  ["Items", "number wide-only", ({ rows }) => count(rows)],
  ["Change of loss", "number", lossChange],
  ["", "wide-only", ({ reason }) => h("span", { class: "soft small", title: reason }, comparison(reason)), "What was found"],
  ["", "number", (model) => (model.active ? h("span", { class: "tag" }, "active") : activate(model)), "Use"],
];

function trainButton({ running }) {
  const words = running ? "Training …" : "Train now";
  // Not `disabled`: the browser would take the focus away from the button just pressed.
  return h("button", { type: "button", "data-action": "train", "aria-disabled": running ? "true" : null }, words);
}

function untrained(active) {
  return { version: 0, created: null, rows: null, validation_loss: null, activated: true, active: active === 0, reason: "" };
}

/** Losses of different runs are of different items: only the change on the same ones says something. */
function lossChange({ validation_loss: loss, previous_loss: before }) {
  const title = loss === null ? null : `mean loss ${decimal(loss, 6)}, that of the model in use ${decimal(before, 6)}`;
  return h("span", { title }, change(loss, before));
}

/** The trainer's verdict without the losses, which the change tells. */
function comparison(reason) {
  return reason.replace(/loss \S+ is (.*?) \S+ of version (\d+)/, "$1 model $2 on the same items");
}

function activate({ version }) {
  const does = { "data-action": "activate", "data-version": version };
  return h("button", { type: "button", ...does, "aria-label": `Activate model ${version}` }, "Activate");
}

function trainingState({ running, started, finished, outcome, next_events: events, next_time: time }, now) {
  if (running) return `Training for ${between(started, now)}.`;
  const last = finished === null ? "No training run yet." : `Last run ${between(finished, now)} ago. ${sentence(comparison(outcome))}`;
  const next = [
    events === null ? null : `after ${count(events)} more events`,
    time === null ? null : `in ${between(now, time)}`,
  ].filter((part) => part !== null);
  return next.length ? `${last} Next ${next.join(" or ")}.` : last;
}
