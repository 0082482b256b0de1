/**
 * Ask again and again, while somebody looks.
 *
 * `task` is awaited, then there is a pause of two seconds; a hidden page asks nothing, and asks at
 * once when it is seen again. Only one task is under way at a time. The task handles its own errors.
 */

const PAUSE = 2000;

export function poll(task, onHidden) {
  let timer = null;
  let running = false;
  let again = false;

  async function run() {
    clearTimeout(timer);
    if (document.hidden) return onHidden();
    if (running) {
      again = true; // somebody could not wait: once more, right after this one
      return;
    }
    running = true;
    try {
      await task();
    } finally {
      running = false;
      timer = setTimeout(run, again ? 0 : PAUSE);
      again = false;
    }
  }

  document.addEventListener("visibilitychange", run);
  run();
  return run;
}
