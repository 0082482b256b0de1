/** The view of an address that means nothing. */

import { h, patch } from "./dom.js";

export function lostView(root) {
  const head = () => [h("a", { class: "back", href: "#/" }, "← Overview"), h("h1", { tabindex: "-1" }, "No such page")];
  const hint = () => h("p", { class: "lead" }, ["There is nothing at this address. See the ", h("a", { href: "#/" }, "overview"), " or ", h("a", { href: "#/queries" }, "all queries"), "."]);
  return { title: "No such page", head, load: async () => ({}), render: () => patch(root, head(), hint()) };
}
