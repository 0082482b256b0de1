/** What to do next, where there is nothing to show yet: lines to copy into a terminal. */

import { h } from "./dom.js";

const base = () => new URL("v1/", location.href.split("#")[0]).href;

/** The three calls that make a service out of an empty store. */
export function firstSteps() {
  return h("section", { class: "panel start" }, [
    h("header", {}, h("h2", {}, "Start here")),
    h("p", { class: "note" }, "Give a query some candidates with their features."),
    code(`curl -X PUT ${base()}queries/tea/items -H 'Content-Type: application/json' \\
  -d '{"items": [{"id": "green", "features": {"price": 3.0, "rating": 4.6}},
    {"id": "black", "features": {"price": 2.0, "rating": 4.1}}]}'`),
    h("p", { class: "note" }, "Ask for a list."),
    code(`curl ${base()}rank -H 'Content-Type: application/json' -d '{"query": "tea", "k": 2}'`),
    h("p", { class: "note" }, "Tell what users clicked, citing the list."),
    code(`curl ${base()}feedback -H 'Content-Type: application/json' \\
  -d '{"events": [{"event_id": "1", "ranking_id": "…", "item": "green", "type": "click"}]}'`),
    h("p", { class: "note" }, "Or see it at work: ebrank serve --demo"),
  ]);
}

/** The call that gives a query its first candidates. */
export function putLine(query) {
  return code(`curl -X PUT ${base()}queries/${encodeURIComponent(query).replaceAll("'", "%27")}/items \\
  -H 'Content-Type: application/json' -d '{"items": [{"id": "first", "features": {"price": 3.0, "rating": 4.6}}]}'`);
}

/** A panel's reason for being empty. */
export function nothing(reason) {
  return h("p", { class: "soft small" }, reason);
}

function code(text) {
  return h("pre", { tabindex: "0" }, text);
}
