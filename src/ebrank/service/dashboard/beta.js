/** The Beta distribution, to draw what is believed of an item's relevance. */

const LANCZOS = [
  676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
  -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** Return log Γ(x) for x > 0 (Lanczos, g = 7), to about 15 digits. */
export function logGamma(x) {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const z = x - 1;
  const t = z + 7.5;
  const sum = LANCZOS.reduce((total, c, i) => total + c / (z + i + 1), 0.99999999999980993);
  return 0.5 * Math.log(2 * Math.PI) + (z + 0.5) * Math.log(t) - t + Math.log(sum);
}

/** Return the density of Beta(a, b) at x, 0 < x < 1. */
export function density(x, a, b) {
  const logB = logGamma(a) + logGamma(b) - logGamma(a + b);
  return Math.exp((a - 1) * Math.log(x) + (b - 1) * Math.log1p(-x) - logB);
}

/**
 * Return the parameters of an item's posterior, Beta(c + α, max(E − c, 0) + β): those of
 * `ebrank.equations.posterior_interval`.
 */
export function posterior({ clicks, exposure, alpha, beta }) {
  return [clicks + alpha, Math.max(exposure - clicks, 0) + beta];
}
