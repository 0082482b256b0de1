/**
 * Questions that must be answered before anything happens, as native dialogs: the browser keeps the
 * focus inside, Escape says no, and the focus returns to where it was.
 */

import { token } from "./api.js";
import { h } from "./dom.js";

function ask(title, content, verb, refusal = "Cancel") {
  const no = h("button", { type: "button", hidden: refusal === null }, refusal);
  const yes = h("button", { type: "submit", class: "primary" }, verb);
  const form = h("form", {}, h("h2", { id: "question" }, title), content, h("div", { class: "choices" }, no, yes));
  const dialog = h("dialog", { "aria-labelledby": "question" }, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    no.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.close("yes");
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    dialog.showModal();
  });
}

/** Resolve to whether the user means it. */
export function confirmed(title, explanation, verb) {
  return ask(title, h("p", {}, explanation), verb);
}

/** Announce something that cannot be overlooked. */
export function announced(title, explanation) {
  return ask(title, h("p", {}, explanation), "Close", null);
}

/** Ask for a token and keep it for this tab; an empty one is forgotten. Resolves to whether it changed. */
export async function tokenEntered(complaint = null) {
  const input = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false" });
  const given = await ask(
    "Token",
    [
      complaint === null ? null : h("p", { class: "complaint", role: "alert" }, complaint),
      h("p", { class: "soft small" }, [
        "Reading this page needs the scope rank, training and activating models the scope admin. ",
        "The token is kept until this tab is closed. Leave it empty to forget it.",
      ]),
      h("label", { class: "visually-hidden", for: "token" }, "Token"),
      input,
    ],
    "Use token",
  );
  if (!given) return false;
  if (input.value.trim() === "") token.forget();
  else token.set(input.value.trim());
  return true;
}
