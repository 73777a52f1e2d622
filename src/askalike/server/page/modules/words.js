// Numbers and moments as people read them.

const DATE = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", timeZone: "UTC" });
const MINUTE = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const WHOLE = new Intl.NumberFormat();

export const date = (moment) => (moment ? DATE.format(new Date(moment)) : "");
export const minute = (moment) => (moment ? MINUTE.format(new Date(moment)) : "");
export const whole = (number) => WHOLE.format(number);
export const count = (number, single, more = `${single}s`) => `${whole(number)} ${number === 1 ? single : more}`;
export const percent = (share) => `${Math.round(share * 100)} %`;

/** Bytes in the unit that fits: 1536 is "1.5 kB". */
export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let at = 0;
  let left = bytes;
  while (left >= 1000 && at < units.length - 1) {
    left /= 1000;
    at += 1;
  }
  return `${at && left < 100 ? left.toFixed(1) : Math.round(left)} ${units[at]}`;
}

/** Seconds in the two units that fit: 3700 is "1 h 1 min". */
export function duration(seconds) {
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  let left = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [name, length] of units) {
    if (left >= length && parts.length < 2) parts.push(`${Math.floor(left / length)} ${name}`);
    left %= length;
  }
  return parts.join(" ") || "0 s";
}

/** A question's title, or what stands for one where it has none. */
export const titleOf = (question) => question.title || "(no title)";

export const milliseconds = (ms) =>
  ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;

const COMPONENTS = { cosine: "meaning", interaction: "word by word", bm25: "words", alone: "by itself", rank_factor: "rank factor", same: "fully answered" };
const NAMED = Object.keys(COMPONENTS);

/** The parts of a score in words: "meaning 0.82 · words 12.3". */
export function parts(components) {
  return Object.entries(components)
    .filter(([name]) => name !== "bm25_share")
    .sort(([name], [other]) => NAMED.indexOf(name) - NAMED.indexOf(other))
    .map(
      ([name, value]) => `${COMPONENTS[name] ?? name} ${Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2)}`,
    )
    .join(" · ");
}
