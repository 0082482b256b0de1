/** Tables from rows of data. */

import { h } from "./dom.js";

/**
 * A table. `columns`: [name, class, cell, label], where `cell(row, i, group)` gives the content of the
 * i-th row of its group, and `label` names a column without a name; `groupOf` says which rows stand together, in the order in which they first come.
 */
export function table(columns, rows, groupOf = () => "") {
  const groups = Map.groupBy(rows, groupOf);
  return h("table", {}, [
    h("thead", {}, h("tr", {}, columns.map(heading))),
    [...groups].map(([group, members]) => h("tbody", {}, members.map((row, i) => tableRow(columns, row, i, group)))),
  ]);
}

function heading([name, kind, , label]) {
  return h("th", { scope: "col", class: kind, "aria-label": label }, name);
}

function tableRow(columns, row, i, group) {
  return h("tr", {}, columns.map(([, kind, cell]) => h("td", { class: kind }, cell(row, i, group))));
}

/** Names of facts, each above its value. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** A link to the view of a query. */
export function queryLink(query) {
  return h("a", { href: `#/queries/${encodeURIComponent(query)}`, title: query }, query);
}
