/** How much later than a row etcd may delete it: rows that end in the same minute share a lease. */
const graceMs = 60_000;
/** The longest lease of etcd: 285 years. */
const longestSeconds = 9_000_000_000;

/**
 * A driver for etcd 3.4 and later, over its JSON gateway: `databaseStore(etcd("http://127.0.0.1:2379"))`. etcd tells no time, so the clocks of
 * your processes decide: keep them synchronised. A request with more than 60 limits needs `etcd --max-txn-ops=1024`.
 */
export function etcd(url) {
  /** The leases by the minute in which they end. */
  const leases = new Map();

  async function call(path, body) {
    const response = await fetch(`${url}/v3/${path}`, { method: "POST", body: JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`etcd answered ${response.status}: ${answer.message ?? answer.error}`);
    return answer;
  }

  /** A lease that outlives `lifeMs`. Each is asked for once. */
  function leaseFor(lifeMs) {
    const nowMs = Date.now();
    const minute = Math.ceil((nowMs + lifeMs) / 60_000);
    const known = leases.get(minute);
    if (known !== undefined) return known;
    for (const old of leases.keys()) if (old * 60_000 < nowMs) leases.delete(old);
    const seconds = Math.ceil((minute * 60_000 + graceMs - nowMs) / 1000);
    const lease = call("lease/grant", { TTL: Math.min(seconds, longestSeconds) }).then(({ ID }) => ID);
    leases.set(minute, lease);
    lease.catch(() => leases.delete(minute));
    return lease;
  }

  const read = (keys) => keys.map((key) => ({ request_range: { key: base64(key) } }));

  return {
    maxRows: 60,

    async load(keys) {
      const { responses } = await call("kv/txn", { success: read(keys) });
      return { nowMs: Date.now(), rows: responses.map(rowOf) };
    },

    async swap(changes, { fromMs, untilMs }) {
      const keys = changes.map(({ key }) => key);
      const writes = changes.filter(({ value }) => value !== undefined);
      const puts = writes.map(async ({ key, value, lifeMs }) => ({
        request_put: { key: base64(key), value: base64(value), lease: await leaseFor(lifeMs) },
      }));
      const success = await Promise.all(puts);
      const nowMs = Date.now();
      if (nowMs < fromMs || nowMs > untilMs) return { ...(await this.load(keys)), done: false };
      // A key that does not exist has the revision 0.
      const compare = changes.map(({ key, was = "0" }) => ({ target: "MOD", result: "EQUAL", key: base64(key), mod_revision: was }));
      const { succeeded: done = false, header, responses } = await call("kv/txn", { compare, success, failure: read(keys) });
      // What one transaction writes has its revision, which never comes again.
      const written = changes.map(({ was, value }) => ({ version: value === undefined ? was : header.revision, value }));
      return { done, nowMs, rows: done ? written : responses.map(rowOf) };
    },
  };
}

function rowOf({ response_range: { kvs } }) {
  return kvs && { version: kvs[0].mod_revision, value: Buffer.from(kvs[0].value, "base64").toString() };
}

function base64(text) {
  return Buffer.from(text).toString("base64");
}
