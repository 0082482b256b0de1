/** The servers that share a store, as each said of itself a few seconds ago. */

import { h } from "./dom.js";
import { between, count, counted, duration, milliseconds, percent, ratio } from "./format.js";
import { note } from "./over_time.js";
import { table } from "./tables.js";

const LATE = 10; // seconds: a server announces itself every three

export function fleet({ insights }) {
  const { servers, now } = insights;
  const versions = new Set(servers.map(({ version }) => version));
  const models = new Set(servers.map(({ model }) => model));
  const late = servers.filter((server) => server.seen_seconds > LATE).length;
  const about = note(
    `${counted(servers.length, "server")} on one store. `,
    versions.size > 1 ? "They run different versions. " : "",
    models.size > 1 ? "They rank with different models, which lasts some seconds after one goes live. " : "",
    late > 0 ? `${counted(late, "server")} silent for ${duration(LATE)}. ` : "",
    "What looks at items, such as the newest and the buried, is of the queries in the memory of the one that answers.",
  );
  const columns = [
    ["Server", "name", (one) => [h("span", { title: one.name }, one.name), one.answers ? h("span", { class: "tag quiet" }, "answers") : null]],
    ["Up for", "number", (one) => between(one.started, now)],
    ["Version", "number wide-only", (one) => one.version],
    ["Model", "number", (one) => count(one.model)],
    ["Does for all", "wide-only", (one) => one.jobs.join(", ")],
    ["Lists", "number", (one) => count(one.lists)],
    ["Events", "number wide-only", (one) => count(one.events)],
    ["In memory", "number wide-only", (one) => percent(ratio(one.from_memory, one.from_memory + one.from_store))],
    ["Out of date", "number wide-only", (one) => count(one.stale)],
    ["Store", "number wide-only", (one) => milliseconds(one.store_ms)],
    ["Last seen", "number", (one) => `${duration(one.seen_seconds)} ago`],
  ];
  return [about, table(columns, servers)];
}
