/**
 * Numbers and times as people read them. What is absent is a dash, never "NaN". A number and its unit
 * are not torn apart at the end of a line.
 */

const ABSENT = "–";
const GAP = "\u00a0";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const MINUTES = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const clock = new Intl.DateTimeFormat("en", MINUTES);
const second = new Intl.DateTimeFormat("en", { ...MINUTES, second: "2-digit" });
const moment = new Intl.DateTimeFormat("en", { ...MINUTES, month: "short", day: "numeric" });

const known = (value) => typeof value === "number" && Number.isFinite(value);

/** At most so many decimals, without a closing .0. */
const plain = (value, digits) => String(Number(value.toFixed(digits)));

/** 12,345, or 1.2M where digits no longer help. */
export function count(value) {
  if (!known(value)) return ABSENT;
  return Math.abs(value) < 100_000 ? whole.format(value) : short.format(value);
}

/** A number with so many decimals. */
export function decimal(value, digits = 2) {
  return known(value) ? value.toFixed(digits) : ABSENT;
}

/** A number with its sign and so many decimals. */
export function signed(value, digits = 2) {
  return known(value) ? `${value < 0 ? "−" : "+"}${decimal(Math.abs(value), digits)}` : ABSENT;
}

/** A rate that may be far below or above one. */
export function rate(value) {
  if (!known(value)) return ABSENT;
  return value < 10 ? plain(Number(value.toPrecision(2)), 3) : count(value);
}

/** 0.123 as 12 %; small shares keep a digit or two. */
export function percent(value) {
  if (!known(value)) return ABSENT;
  if (value > 0 && value < 0.00095) return `${plain(Number((100 * value).toPrecision(1)), 6)}${GAP}%`;
  return `${plain(100 * value, value < 0.0995 ? 1 : 0)}${GAP}%`;
}

/** By how much a value differs from an earlier one, as −0.07 %. */
export function change(value, before) {
  if (!known(value) || !known(before) || before === 0) return ABSENT;
  const share = (value - before) / Math.abs(before);
  return `${share > 0 ? "+" : share < 0 ? "−" : ""}${percent(Math.abs(share))}`;
}

/** Milliseconds. */
export function milliseconds(value) {
  if (!known(value)) return ABSENT;
  return `${value < 10 ? plain(value, 1) : whole.format(value)}${GAP}ms`;
}

/** Seconds as 4 s, 3 min, 5 h, 2 d: one unit, for it is read at a glance. */
export function duration(seconds) {
  if (!known(seconds)) return ABSENT;
  if (seconds < 10) return `${plain(seconds, 1)}${GAP}s`;
  if (seconds < 100) return `${seconds.toFixed(0)}${GAP}s`;
  if (seconds < 6000) return `${(seconds / 60).toFixed(0)}${GAP}min`;
  if (seconds < 172_800) return `${(seconds / 3600).toFixed(0)}${GAP}h`;
  return `${(seconds / 86_400).toFixed(0)}${GAP}d`;
}

/** How long it is from one moment to another, in the future or just now too. */
export function between(then, now) {
  return duration(Math.max(0, now - then));
}

/** A wait, which the server tells in whole seconds. */
export function wait(seconds) {
  return known(seconds) && seconds < 1 ? `<${GAP}1${GAP}s` : duration(seconds);
}

/** What half of some items did so far, in a sentence: the median wait is null if it is to come. */
export function half(median, did) {
  return median === null ? `Fewer than half ${did} so far.` : `Half ${did} within ${duration(Math.max(1, median))}.`;
}

const MARKS = [1, 10, 60, 600, 3600, 21_600, 86_400, 604_800, 2_592_000];

/** Round ages up to an end as [{seconds, name}], as many as fit at an axis. */
export function ages(end, width) {
  const marks = [0, ...MARKS.filter((mark) => mark <= end)];
  const step = Math.ceil(marks.length / Math.max(2, Math.floor(width / 70)));
  return marks
    .filter((_, i) => i % step === 0)
    .map((seconds) => ({ seconds, name: seconds === 0 ? "0" : duration(seconds) }));
}

/** Bytes as 12 MB; powers of ten. */
export function bytes(value) {
  if (!known(value)) return ABSENT;
  const power = Math.min(4, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  const scaled = value / 1000 ** power;
  return `${plain(scaled, scaled < 10 && power > 0 ? 1 : 0)}${GAP}${["B", "KB", "MB", "GB", "TB"][power]}`;
}

/** How to write times of buckets of so many seconds, over so many hours. */
export function timesOf(bucketSeconds, hours) {
  const format = hours > 24 ? moment : bucketSeconds < 60 ? second : clock;
  return (seconds) => format.format(new Date(1000 * seconds));
}

/** Day and time of seconds since 1970. */
export function dayAndTime(seconds) {
  return known(seconds) ? moment.format(new Date(1000 * seconds)) : ABSENT;
}

/** a/b, or null where there is nothing to divide by. */
export function ratio(a, b) {
  return known(a) && known(b) && b > 0 ? a / b : null;
}

/** "1 item", "2 items". */
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

/** Words as a sentence, with a capital and a period. */
export function sentence(text) {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
