/** The view of all queries: a page of them at a time, or those whose names contain something. */

import { h, patch } from "./dom.js";
import { nothing } from "./empty.js";
import { count } from "./format.js";
import { queryLink, table } from "./tables.js";

const PER_PAGE = 50;

/** The address of a page of queries: those that contain `find`, after a name. */
export function queriesAddress(find, after = "") {
  const options = new URLSearchParams(Object.entries({ find, after }).filter(([, value]) => value !== ""));
  return options.size ? `#/queries?${options}` : "#/queries";
}

export function queriesView(root, options) {
  const [find, after] = ["find", "after"].map((name) => options.get(name) ?? "");
  const asked = new URLSearchParams({ contains: find, cursor: after, limit: PER_PAGE });
  return {
    title: "Queries",
    head,
    load: (get) => get(`v1/queries?${asked}`),
    render: (page) => patch(root, head(), content(page, find, after)),
  };
}

function head() {
  return [h("a", { class: "back", href: "#/" }, "← Overview"), h("h1", { tabindex: "-1" }, "Queries")];
}

function content({ queries, next }, find, after) {
  const which = find === "" ? "All queries, by name." : ["Queries that contain ", h("strong", {}, find), ", by name. ", h("a", { href: "#/queries" }, "All queries")];
  return [
    h("p", { class: "lead" }, which),
    h("div", { class: "panels" }, h("section", { class: "panel wide", "aria-label": "Queries" }, [
      queries.length ? listed(queries) : nothing(find === "" ? "There is none yet." : "None does."),
      h("p", { class: "small soft more" }, [
        after === "" ? null : h("a", { href: queriesAddress(find) }, "First page"),
        after !== "" && next !== null ? " · " : null,
        next === null ? null : h("a", { href: queriesAddress(find, next) }, "Next page"),
      ]),
    ])),
  ];
}

function listed(queries) {
  const columns = [
    ["Query", "name", ({ query }) => queryLink(query)],
    ["Items, with withdrawn ones", "number", ({ items }) => count(items)],
  ];
  const { compare } = new Intl.Collator("en", { numeric: true }); // 2 before 10
  return table(columns, queries.toSorted((a, b) => compare(a.query, b.query)));
}
