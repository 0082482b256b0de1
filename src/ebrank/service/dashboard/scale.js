/** From values to pixels, and the round numbers to write at an axis. */

/** Return a function that maps [from, to] to [start, end]; a range of no width maps to the start. */
export function linear([from, to], [start, end]) {
  const slope = to === from ? 0 : (end - start) / (to - from);
  return (value) => start + (value - from) * slope;
}

/** Return the smallest of 1, 2, 4, 6, 8 × 10^n that is at least x: axes end at it and are halved. */
export function roundUp(x) {
  if (!(x > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(x));
  const step = [1, 2, 4, 6, 8, 10].find((candidate) => candidate * power >= x * (1 - 1e-9));
  return step * power;
}

/** Return the largest of some numbers; 0 if there is none. Holes are left out. */
export function highest(values) {
  return values.reduce((best, value) => (value !== null && value > best ? value : best), 0);
}

/** Return a path through points; null leaves a gap, and `step` keeps the level until the next one. */
export function path(points, step = false) {
  let broken = true;
  let level = 0;
  return points
    .map(([x, y]) => {
      if (y === null) {
        broken = true;
        return "";
      }
      const [px, py] = [x.toFixed(1), y.toFixed(1)];
      const move = broken ? `M${px} ${py}` : step ? `L${px} ${level} L${px} ${py}` : `L${px} ${py}`;
      broken = false;
      level = py;
      return move;
    })
    .join("");
}
