/** What a button of the page does, after asking whether it is meant. */

import { post, Refused } from "./api.js";
import { announced, confirmed } from "./dialogs.js";
import { sentence } from "./format.js";

/** Perform the action an element names in its data attributes. */
export async function perform({ action, version }) {
  try {
    if (action === "train") await post("v1/train");
    if (action === "activate") await activate(Number(version));
  } catch (problem) {
    await announced("That did not work", explained(problem));
  }
}

async function activate(version) {
  const meant = await confirmed(
    `Activate model ${version}?`,
    version === 0
      ? "All rankings will use the prior before any training: every item is predicted alike. Clicks stay."
      : "All rankings will use this version of the prior from the next request on. Clicks stay.",
    "Activate",
  );
  if (meant) await post(`v1/models/${version}/activate`);
}

function explained(problem) {
  if (problem instanceof Refused && problem.status === 403) {
    return "This needs a token with the scope admin. Enter one with the button Token at the top.";
  }
  return sentence(problem.message);
}
