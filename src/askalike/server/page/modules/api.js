// The service's JSON, as functions. Every call goes to the folder that the page came from, so a proxy may add a prefix.

import { keyFor, storedKey } from "./keys.js";

const BASE = new URL(".", document.baseURI);

/** What went wrong: `message` says what was found, `hint` what to do; `kind` is "offline", "key", "refused" or "busy". */
export class ServiceError extends Error {
  constructor(message, { hint = "", kind = "refused", status = 0 } = {}) {
    super(message);
    this.hint = hint;
    this.kind = kind;
    this.status = status;
  }
}

// What a row shows of a hit; bodies and answers as text stay out.
const HIT_FIELDS = [
  ...["likelihood", "score", "components", "matched", "missing", "highlights", "excerpt", "answers", "via", "rank"],
  ...["url", "created", "score", "tags"].map((name) => `question.${name}`),
  ...["html", "accepted", "author", "created", "score"].map((name) => `best_answer.${name}`),
];

/** Earlier questions like this one. */
export function similar(question, signal) {
  return call("POST", "v1/similar", { sent: { fields: HIT_FIELDS, ...question }, signal });
}

/** A question with its answers and links. */
export function question(id, signal) {
  return call("GET", `v1/questions/${encodeURIComponent(id)}`, { signal });
}

/** Similar questions, whenever they were asked. */
export function neighbours(id, k, signal) {
  return similar({ id, k }, signal);
}

/** The newest questions, a page at a time. */
export function newest(limit, signal) {
  return call("GET", `v1/questions?limit=${limit}`, { signal });
}

/** Pairs that nobody has judged, the likeliest first; every fifth is drawn at random, so that numbers can be checked. */
export function duplicates(cursor, minimum, tag, signal) {
  const query = new URLSearchParams({ limit: 20, sample: true, minimum, tag, cursor: cursor ?? "" }); // an empty one asks nothing
  return call("GET", `v1/duplicates?${query}`, { signal });
}

/** Questions that ask the same, each the same as every other, the largest groups first. */
export function groups(limit, signal) {
  return call("GET", `v1/duplicates/groups?limit=${limit}`, { signal });
}

/** Counts that a question answered the one that somebody was about to ask. */
export function helped(hit) {
  return call("POST", `v1/questions/${encodeURIComponent(hit.question.id)}/helped`);
}

/** Counts that a suggestion was opened; who opens it notices nothing where that fails. */
export function opened(id) {
  call("POST", `v1/questions/${encodeURIComponent(id)}/opened`).catch(() => {});
}

/** Stores what a moderator decides on a pair; `link` links the later question to the earlier one, where both are the same. */
export function decide(pair, verdict, link, by) {
  const sent = { question: pair.question.id, candidate: pair.candidate.id, verdict, link, by, draw: pair.draw };
  return call("POST", "v1/decisions", { sent, writes: true });
}

/** Takes a decision back, by the number of its entry in the log. */
export function undo(number, by) {
  return call("POST", "v1/decisions/undo", { sent: { number, by }, writes: true });
}

/** What moderators did, newest first, from before an entry on. */
export function moderationLog(before, signal) {
  return call("GET", `v1/log?limit=10&before=${before}`, { signal, writes: true });
}

/** The state of the service and of its forum. */
export function status(signal) {
  return call("GET", "v1/status", { signal });
}

async function call(method, path, { sent, signal, writes = false } = {}) {
  let answer = await request(method, path, sent, signal);
  const refusal = async () => {
    const lacksKey = answer.status === 401 || (writes && answer.status === 403);
    return lacksKey ? problem(answer, await json(answer.clone())) : null;
  };
  const again = async () => {
    answer = await request(method, path, sent, signal);
    return refusal();
  };
  const refused = await refusal();
  const isGiven = refused && (await keyFor(writes, storedKey() ? refused : null, again));
  if (isGiven && (await refusal())) await again(); // the dialogue has tried another call
  return read(answer);
}

async function request(method, path, sent, signal) {
  const headers = { Accept: "application/json" };
  const key = storedKey();
  if (key) headers.Authorization = `Bearer ${key}`;
  if (sent) headers["Content-Type"] = "application/json";
  try {
    return await fetch(new URL(path, BASE), {
      method,
      headers,
      signal,
      body: sent && JSON.stringify(sent),
      credentials: "omit",
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError("Cannot reach the service", {
      kind: "offline",
      hint: navigator.onLine
        ? "It may have stopped, or your connection may be down. Try again in a moment."
        : "This device is offline.",
    });
  }
}

async function read(answer) {
  const body = await json(answer);
  if (answer.ok && body) return body;
  throw problem(answer, body);
}

async function json(answer) {
  try {
    return await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return null;
  }
}

function problem(answer, body) {
  const kinds = { 401: "key", 403: "key", 429: "busy", 503: "busy", 504: "busy" };
  const pause = Number(answer.headers.get("Retry-After"));
  return new ServiceError(sentence(body?.error) || `The service answered ${answer.status}`, {
    hint: [sentence(body?.hint), pause > 0 ? `Try again in ${pause} s.` : ""].filter(Boolean).join(" "),
    kind: kinds[answer.status] ?? "refused",
    status: answer.status,
  });
}

function sentence(text) {
  return text ? text.charAt(0).toUpperCase() + text.slice(1) : "";
}
