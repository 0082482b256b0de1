/** The panel of models: what was trained, what is active, and the way back. */

import { h } from "./dom.js";
import { change, count, dayAndTime, decimal, duration, sentence } from "./format.js";

export function modelsPanel({ insights }) {
  const { models, training, model: active, now } = insights;
  const versions = models.some(({ version }) => version === 0) ? models : [untrained(active), ...models];
  const newest = versions.toReversed();
  return [
    h("div", { class: "training" }, [
      h("p", { class: "small soft" }, trainingState(training, now)),
      trainButton(training),
    ]),
    h("table", {}, [
      h("thead", {}, h("tr", {}, HEAD.map(heading))),
      h("tbody", {}, newest.slice(0, 10).map(row)),
    ]),
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
  const since = prior.since === null ? "" : ` since ${dayAndTime(prior.since)}, ${duration(Math.max(0, now - prior.since))} ago`;
  return h("p", { class: "small notice", id: "prior" }, `${what}${since}. ${sentence(comparison(prior.reason))}`);
}

const HEAD = [
  ["Model", ""],
  ["Made", ""],
  ["Items", "number wide-only"],
  ["Change of loss", "number"],
  ["", "wide-only", "What was found"],
  ["", "number", "Use"],
];

function heading([name, kind, label]) {
  return h("th", { scope: "col", class: kind, "aria-label": label }, name);
}

function trainButton({ running }) {
  const words = running ? "Training …" : "Train now";
  // Not `disabled`: the browser would take the focus away from the button just pressed.
  return h("button", { type: "button", "data-action": "train", "aria-disabled": running ? "true" : null }, words);
}

function untrained(active) {
  return { version: 0, created: null, rows: null, validation_loss: null, activated: true, active: active === 0, reason: "" };
}

function row(model) {
  const cells = [
    String(model.version),
    model.version === 0 ? "before any training" : dayAndTime(model.created),
    count(model.rows),
    lossChange(model),
    h("span", { class: "soft small", title: model.reason }, comparison(model.reason)),
    model.active ? h("span", { class: "tag" }, "active") : activate(model),
  ];
  return h("tr", {}, cells.map((cell, i) => h("td", { class: HEAD[i][1] }, cell)));
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
  const ago = (then) => `${duration(Math.max(0, now - then))} ago`;
  if (running) return `Training since ${duration(Math.max(0, now - started))}.`;
  const last = finished === null ? "No training run yet." : `Last run ${ago(finished)}. ${sentence(comparison(outcome))}`;
  const next = [
    events === null ? null : `after ${count(events)} more events`,
    time === null ? null : `in ${duration(Math.max(0, time - now))}`,
  ].filter((part) => part !== null);
  return next.length ? `${last} Next ${next.join(" or ")}.` : last;
}
