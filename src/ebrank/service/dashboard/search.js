/** The search box: it offers names while one types, and opens the query, or a list of those like it. */

import { get } from "./api.js";
import { h, patch } from "./dom.js";
import { queriesAddress } from "./queries.js";

const PAUSE = 150; // milliseconds without a key, before names are asked for
const OFFERED = 8;

/** Make the form of the page's header work. */
export function searchBox(form) {
  const input = form.querySelector("input");
  const offered = form.querySelector("datalist");
  let timer = null;

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => patch(offered, ...(await names(input.value)).map((value) => h("option", { value }))), PAUSE);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = input.value.trim();
    clearTimeout(timer);
    location.hash = wanted === "" ? queriesAddress("") : await addressOf(wanted);
    input.value = "";
  });
}

async function names(text) {
  return text.trim() === "" ? [] : asked(`contains=${encodeURIComponent(text.trim())}&limit=${OFFERED}`);
}

/** A query of this name, or the only one that contains it, or a list of those that do. */
async function addressOf(wanted) {
  const [exact] = await asked(`prefix=${encodeURIComponent(wanted)}&limit=1`); // names are in order: it would be the first
  const known = [wanted, wanted.normalize("NFKC").toLowerCase().replaceAll(/\s+/g, " ")];
  if (known.includes(exact)) return queryAddress(exact);
  const like = await asked(`contains=${encodeURIComponent(wanted)}&limit=2`);
  return like.length === 1 ? queryAddress(like[0]) : queriesAddress(wanted);
}

const queryAddress = (query) => `#/queries/${encodeURIComponent(query)}`;

/** Names of queries; none if the server does not say. */
async function asked(options) {
  try {
    return (await get(`v1/queries?${options}`)).queries.map(({ query }) => query);
  } catch {
    return [];
  }
}
