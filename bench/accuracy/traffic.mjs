import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { formatOf } from "@floodgate/simulator";
import { randomOf } from "../lib/random.mjs";

/** Requests as `{ atMs, key }`, in order of time. Each kind of traffic is the same on every machine: its randomness has a seed. */

const minuteMs = 60_000;
/** A whole minute, so that windows begin at the start. */
const startMs = Date.UTC(2026, 0, 1);

/** A time until the next event, if events come independently and so often on average. */
const pause = (random, meanMs) => -Math.log(1 - random()) * meanMs;

const byTime = (requests) => requests.map(({ atMs, key }) => ({ atMs: Math.floor(atMs), key })).sort((a, b) => a.atMs - b.atMs);

/** Requests at random times from 1000 clients: the n-th sends 1/n as many as the first. */
export function zipf() {
  const random = randomOf(1);
  const shares = Array.from({ length: 1000 }, (_, i) => 1 / (i + 1));
  const total = shares.reduce((sum, share) => sum + share, 0);
  const upTo = [];
  for (const share of shares) upTo.push((upTo.at(-1) ?? 0) + share / total);
  const requests = [];
  for (let atMs = startMs; requests.length < 100_000; atMs += pause(random, 36)) {
    const at = random();
    requests.push({ atMs, key: `client-${upTo.findIndex((sum) => at < sum)}` });
  }
  return byTime(requests);
}

/** 100 clients that each send 5 to 60 requests within two seconds, then nothing for a minute on average. */
export function bursts() {
  const random = randomOf(2);
  const requests = [];
  for (let client = 0; client < 100; client++) {
    for (let atMs = startMs + random() * minuteMs; atMs < startMs + 60 * minuteMs; atMs += pause(random, minuteMs)) {
      const size = 5 + Math.floor(random() * 56);
      for (let i = 0; i < size; i++) requests.push({ atMs: atMs + random() * 2000, key: `client-${client}` });
    }
  }
  return byTime(requests);
}

/** Ten clients that send a request each half second, whatever the answer. */
export function polling() {
  const requests = [];
  for (let client = 0; client < 10; client++) {
    for (let i = 0; i < 2 * 60 * 60; i++) requests.push({ atMs: startMs + i * 500 + client * 37, key: `client-${client}` });
  }
  return byTime(requests);
}

/** The limit that this client attacks. */
export const timedLimit = 200;

/** A client that sends as many requests in the last 50 milliseconds of a minute, and as many again shortly before the end of the next one. */
export function timed() {
  const requests = [];
  for (let minute = 0; minute < 60; minute += 4) {
    for (let i = 0; i < timedLimit; i++) requests.push({ atMs: startMs + (minute + 1) * minuteMs - 50 + i / 4, key: "client" });
    for (let i = 0; i < timedLimit; i++) requests.push({ atMs: startMs + (minute + 2) * minuteMs - 150 + i / 4, key: "client" });
  }
  return byTime(requests);
}

/** The requests of an access log of the combined format, joined to one stretch: minutes without a request are cut out. */
export async function fromLog(file) {
  const combined = formatOf("combined");
  const requests = [];
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const request = combined.parse(line);
    if (typeof request === "object") requests.push({ atMs: request.timeMs, key: request.address ?? "unknown" });
  }
  requests.sort((a, b) => a.atMs - b.atMs);
  const minutes = new Map();
  for (const { atMs } of requests) {
    const minute = Math.floor(atMs / minuteMs);
    if (!minutes.has(minute)) minutes.set(minute, minutes.size);
  }
  return requests.map(({ atMs, key }) => ({
    atMs: startMs + minutes.get(Math.floor(atMs / minuteMs)) * minuteMs + (atMs % minuteMs),
    key,
  }));
}
