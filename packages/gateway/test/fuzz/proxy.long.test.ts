import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { atEnd, startGateway } from "../proxy/support.js";
import { type FuzzRequest, type Misbehaviour, misbehaviour, request } from "./answers.js";
import { inParallel, inPieces, mutate, Random, seed, talk, watchDeaths } from "./wire.js";

/** About a minute. */
const runs = 6000;
/** No request may take longer. It is far above all timeouts of the gateway. */
const longestMs = 60_000;
const timeouts = {
  upstreamConnectTimeoutMs: 2000,
  upstreamTimeoutMs: 2000,
  clientTimeoutMs: 10_000,
  keepAliveTimeoutMs: 500,
  tunnelTimeoutMs: 300,
};

const { deaths, stop } = watchDeaths();
afterAll(stop);

/** The random choices of a run, the same each time. */
const choices = (run: number, salt: number): Random => new Random(seed + run * 7 + salt);

/** An upstream that misbehaves on connections that it keeps, cuts or resets. */
async function startMisbehaving(isPatient: boolean): Promise<number> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.setEncoding("latin1");
    socket.on("error", () => {});
    let text = "";
    socket.on("data", (data: string) => {
      text = (text + data).slice(-400_000);
      const [, run] = /^[A-Z]+ \/run\/(\d+) HTTP/m.exec(text) ?? [];
      const head = text.indexOf("\r\n\r\n");
      if (run === undefined || head === -1) return;
      const { text: answer, pieces, isEarly, end } = planned(Number(run));
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0);
      if (isPatient && !isEarly && text.length < head + 4 + length) return;
      text = "";
      void answerIn(socket, isPatient ? pieces : [answer], end);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEnd(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

async function answerIn(socket: Socket, pieces: readonly string[], end: "keep" | "end" | "destroy" | "reset"): Promise<void> {
  for (const [i, piece] of pieces.entries()) {
    if (i > 0) await new Promise((done) => setTimeout(done, 3));
    if (socket.writable) socket.write(piece, "latin1");
  }
  if (end === "end") socket.end();
  else if (end === "destroy") socket.destroySoon();
  else if (end === "reset") socket.resetAndDestroy();
}

describe.each([
  ["answers in pieces, mostly when it has the request", true],
  ["answers at once, and drops the rest of the request", false],
])("an upstream that %s, with whatever bytes it can think of", (_name, isPatient) => {
  it("ends no process, keeps no client waiting, and each client gets well-formed answers of its own", async () => {
    console.log(`FLOODGATE_SEED=${seed} repeats this run`);
    const gateway = await startGateway(await startMisbehaving(isPatient), undefined, timeouts);
    const faults: string[] = [];
    const statuses = new Map<number | "closed", number>();
    await inParallel(runs, 24, async (run) => {
      const random = choices(run, 2);
      const requests: FuzzRequest[] = [request(random, run)];
      if (random.oneIn(3) && requests[0]?.isKept) requests.push(request(random, run));
      const fault = (what: string): void =>
        void faults.push(`run ${run}: ${what}. ${JSON.stringify(requests.map(({ text }) => text.slice(0, 150)))} ${shown(run)}`);
      try {
        const { answers, hangs } = await talk(
          gateway.port,
          requests.flatMap(({ text }) => (text.length > 1000 ? [text] : inPieces(random, text))),
          {
            methods: requests.map(({ method }) => method),
            isEnough: (all) => all.length === requests.length || all.at(-1)?.status === 101,
            longestMs,
          },
        );
        if (hangs) fault("hangs");
        for (const { status, headers } of answers) {
          const [, from] = /^of-(\d+)-$/.exec(headers.get("x-run") ?? "") ?? [];
          const isOwn = from === undefined || planned(run).text.includes(`of-${from}-`);
          if (!isOwn && !(isPatient && mayComeLate(Number(from)))) fault(`got the answer of run ${from}`);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          if (status === 101 && !requests.some(({ isTunnel }) => isTunnel)) fault("101 to an ordinary request");
        }
        if (answers.length === 0) statuses.set("closed", (statuses.get("closed") ?? 0) + 1);
      } catch (error) {
        fault(`${error}`);
      }
      for (const death of deaths.splice(0)) fault(`ended the process: ${(death as Error).stack}`);
    });
    console.log(
      [...statuses]
        .sort()
        .map(([status, many]) => `${status}: ${many}`)
        .join(", "),
    );
    expect(faults.slice(0, 5), `${faults.length} faults, seed ${seed}`).toEqual([]);
    // The gateway is as it was.
    expect(statuses.get(200)).toBeGreaterThan(0);
  }, 600_000);
});

/** What the upstream does in a run. */
function planned(run: number): Misbehaviour & { readonly pieces: string[] } {
  const random = choices(run, 1);
  const plan = misbehaviour(random, run, (text) => mutate(random, text));
  return { ...plan, pieces: inPieces(random, plan.text) };
}

/**
 * Whether the upstream may send a second answer after a pause. The gateway may have sent the next request on the connection by then, and in
 * HTTP/1.1 nothing tells that the answer is not for that (RFC 9112, section 9.2: only the order tells).
 */
function mayComeLate(run: number): boolean {
  const { pieces, text } = planned(run);
  return pieces.length > 1 && text.split("HTTP/1").length > 2;
}

function shown(run: number): string {
  const { pieces, text, ...plan } = planned(run);
  return JSON.stringify({ ...plan, pieces: pieces.length, text: text.slice(0, 600) });
}
