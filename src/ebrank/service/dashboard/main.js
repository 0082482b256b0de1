/**
 * The page: which view is open, what the server said last, and whether it still answers.
 *
 * A view is `{title, head, load, render}`: `head` returns what is there at once, with the heading that
 * takes the focus, `load` asks the server, `render` draws the answer into <main>.
 * Addresses are `#/`, `#/24h`, `#/7d`, `#/queries`, `#/queries?find=TEXT` and `#/queries/NAME`.
 */

import { get, Refused, token } from "./api.js";
import { perform } from "./actions.js";
import { tokenEntered } from "./dialogs.js";
import { h, patch } from "./dom.js";
import { sentence } from "./format.js";
import { hoursOf, overview } from "./overview.js";
import { poll } from "./poll.js";
import { queriesView } from "./queries.js";
import { queryView } from "./query.js";
import { searchBox } from "./search.js";

const main = document.querySelector("main");
const status = document.querySelector(".status");
const ribbon = document.querySelector(".ribbon");
const tokenButton = document.querySelector("[data-action=token]"); // for servers that ask for one

let view = null;
let seen = null; // the latest answer, to draw it again when the window changes its width
let asking = false;
let about = null; // what the server says of itself: the same in all views

const refresh = poll(update, () => tell("paused", "paused"));

// --- views -------------------------------------------------------------------------------------

function viewOf(hash) {
  const hours = hoursOf(hash);
  if (hours !== undefined) return overview(main, hours);
  const [, name, options] = /^#\/queries(?:\/(.+)|\?(.*))?$/.exec(hash) ?? [null];
  if (name === undefined && options === undefined && hash !== "#/queries") return lostView();
  return name === undefined ? queriesView(main, new URLSearchParams(options)) : queryView(main, decoded(name));
}

/** The view of an address that means nothing. */
function lostView() {
  const head = () => [h("a", { class: "back", href: "#/" }, "← Overview"), h("h1", { tabindex: "-1" }, "No such page")];
  const links = () => [h("a", { href: "#/" }, "overview"), " or ", h("a", { href: "#/queries" }, "all queries")];
  const hint = () => h("p", { class: "lead" }, ["There is nothing at this address. See the ", links(), "."]);
  return { title: "No such page", head, load: async () => ({}), render: () => patch(main, head(), hint()) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a bare % in a hand-written address
  }
}

function open() {
  const first = view === null;
  view = viewOf(location.hash);
  seen = null;
  tokenButton.hidden &&= token.get() === null;
  main.replaceChildren(...view.head(), h("p", { class: "lead" }, "Loading …"));
  document.title = `${view.title} · EBRank`;
  if (!first) {
    scrollTo(0, 0);
    main.querySelector("h1").focus();
  }
  refresh();
}

async function update() {
  const current = view;
  if (current === null || asking) return;
  const { answer, problem } = await current.load(get).then(
    (given) => ({ answer: given }),
    (raised) => ({ problem: raised }),
  );
  if (current !== view) return; // the user went elsewhere meanwhile
  if (problem !== undefined) return failed(problem);
  seen = answer;
  draw();
  tell("connected", "connected");
  if (about === null) introduce(answer.insights ?? (await get("v1/insights").catch(() => null)));
}

function draw() {
  if (seen === null || view === null) return;
  view.render(seen);
}

function introduce(insights) {
  about = insights;
  ribbon.hidden = !insights?.demo;
}

// --- what can go wrong -------------------------------------------------------------------------

function tell(state, words) {
  if (status.dataset.state !== state) status.dataset.state = state;
  if (status.textContent !== words) status.textContent = words;
  main.toggleAttribute("data-stale", ["unreachable", "refused", "waiting"].includes(state) && seen !== null);
}

async function failed(problem) {
  if (!(problem instanceof Refused)) return tell("unreachable", "server unreachable, trying again");
  if (problem.status === 503) tell("waiting", "not ready, trying again");
  else tell("refused", problem.status === 401 ? "token needed" : "refused");
  if (problem.status === 503 && seen !== null) return; // what is known stays
  if (problem.status === 401 || problem.status === 403) await askForToken(problem);
  else patch(main, view.head(), h("p", { class: "lead" }, sentence(problem.message)));
}

async function askForToken(problem) {
  asking = true;
  tokenButton.hidden = false;
  const changed = await tokenEntered(token.get() === null ? null : complaint(problem));
  asking = false;
  // After a no, nothing asks again but the button in the bar.
  if (changed) setTimeout(refresh);
  else view = null;
}

function complaint(problem) {
  return problem.status === 401 ? "This token is not known here." : sentence(problem.message);
}

// --- what users do -----------------------------------------------------------------------------

addEventListener("hashchange", open);
new ResizeObserver(draw).observe(main);

searchBox(document.querySelector(".search"));

document.addEventListener("click", async (event) => {
  const source = event.target.closest("[data-action]");
  if (source === null || source.getAttribute("aria-disabled") === "true") return;
  if (source.dataset.action === "skip") {
    event.preventDefault();
    main.focus();
  } else if (source.dataset.action === "token") {
    if (await tokenEntered()) open();
  } else {
    await perform(source.dataset);
    refresh();
  }
});

open();
