/** Calls to the server this page came from. The token, if one is needed, lives as long as the tab. */

const KEY = "ebrank-token";
const PATIENCE = 10_000; // milliseconds until a silent server counts as unreachable

/** The server answered, and said no. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** There was no answer, or none that this page understands. */
export class Unreachable extends Error {}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** Return what is at a path below the page, such as "v1/insights". */
export const get = (path) => call("GET", path);

/** Ask for something to be done, and return the answer. */
export const post = (path) => call("POST", path);

async function call(method, path) {
  const secret = token.get();
  const headers = secret === null ? {} : { Authorization: `Bearer ${secret}` };
  const answer = await reached(method, path, headers);
  if (answer.ok) return readable(answer);
  throw new Refused(answer.status, await complaint(answer));
}

async function reached(method, path, headers) {
  try {
    return await fetch(path, { method, headers, signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    throw new Unreachable("the server does not answer");
  }
}

async function readable(answer) {
  try {
    return await answer.json();
  } catch {
    throw new Unreachable("the answer broke off");
  }
}

async function complaint(answer) {
  try {
    return (await answer.json()).error.message;
  } catch {
    return `the server answered ${answer.status}`;
  }
}
