import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startProxy, type TcpProxy } from "../src/index.js";
import { sparePort } from "../src/port.js";
import { until } from "../src/until.js";

/** One end of a connection, and the bytes that arrived there. */
interface End {
  readonly socket: Socket;
  readonly text: string;
  readonly ended: boolean;
  /** The code of the error that closed the connection. */
  readonly error: string | undefined;
}

function endOf(socket: Socket): End {
  const end = { socket, text: "", ended: false, error: undefined as string | undefined };
  socket.setEncoding("latin1").on("data", (text) => {
    end.text += text;
  });
  socket.on("end", () => {
    end.ended = true;
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    end.error = error.code;
  });
  return end;
}

let server: Server;
let proxy: TcpProxy;
const sockets: Socket[] = [];

beforeEach(async () => {
  server = createServer({ allowHalfOpen: true });
  server.listen(await sparePort(), "127.0.0.1");
  await once(server, "listening");
  proxy = await startProxy((server.address() as { port: number }).port);
});

afterEach(() => {
  vi.useRealTimers();
  proxy.stop();
  server.close();
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Both ends of a connection through the proxy. */
async function connection(): Promise<{ client: End; far: End }> {
  const accepted = once(server, "connection");
  const client = endOf(connect({ port: proxy.port, host: proxy.host, allowHalfOpen: true }));
  const [socket] = await accepted;
  sockets.push(client.socket, socket);
  return { client, far: endOf(socket) };
}

const arrival = (end: End, text: string): Promise<void> => until(`${text} arrives`, async () => end.text === text);
describe("a proxy", () => {
  it("forwards all bytes both ways, in order, with any latency and after holding", async () => {
    const steps = fc.array(
      fc.record({
        text: fc.string({ minLength: 1, unit: "grapheme-ascii" }),
        latencyMs: fc.nat(3),
        mode: fc.constantFrom("pass" as const, "hold" as const),
      }),
      { maxLength: 10 },
    );
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (list, back) => {
        const { client, far } = await connection();
        const [from, to, way] = back ? [far, client, proxy.replies] : [client, far, proxy.requests];
        for (const { text, latencyMs, mode } of list) {
          way.latencyMs = latencyMs;
          way.mode = mode;
          const before = way.bytes;
          from.socket.write(text);
          await until("the proxy has it", async () => way.bytes === before + text.length);
        }
        way.mode = "pass";
        from.socket.end();
        await until("the end arrives", async () => to.ended);
        expect(to.text).toBe(list.map(({ text }) => text).join(""));
        expect(from.ended).toBe(false);
        client.socket.destroy();
        far.socket.destroy();
      }),
      { numRuns: 10 },
    );
  });

  it("delays each direction by its own latency", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    proxy.requests.latencyMs = 50;
    const { client, far } = await connection();
    client.socket.write("request");
    await until("the proxy has it", async () => proxy.requests.bytes === 7);
    vi.advanceTimersByTime(49);
    far.socket.write("reply");
    await arrival(client, "reply");
    expect(far.text).toBe("");
    vi.advanceTimersByTime(1);
    await arrival(far, "request");
  });

  it("drops replies while the connection stays open", async () => {
    const { client, far } = await connection();
    proxy.replies.mode = "drop";
    far.socket.write("lost");
    await until("the proxy has it", async () => proxy.replies.bytes === 4);
    client.socket.write("request");
    await arrival(far, "request");
    proxy.replies.mode = "pass";
    far.socket.write("kept");
    await arrival(client, "kept");
  });

  it("holds replies on all connections until they are released", async () => {
    proxy.replies.mode = "hold";
    const pairs = [await connection(), await connection()];
    for (const { far } of pairs) far.socket.end("reply");
    await until("the proxy has them", async () => proxy.replies.bytes === 10);
    for (const { client, far } of pairs) {
      client.socket.write("request");
      await arrival(far, "request");
      expect([client.text, client.ended]).toEqual(["", false]);
    }
    proxy.replies.mode = "pass";
    for (const { client } of pairs) {
      await until("the end arrives", async () => client.ended);
      expect(client.text).toBe("reply");
    }
  });

  it("corrupts every byte of the replies and nothing else", async () => {
    const { client, far } = await connection();
    proxy.replies.mode = "corrupt";
    far.socket.write("+PONG\r\n");
    client.socket.write("PING");
    await arrival(client, "\xab\xd0\xcf\xce\xc7\x8d\x8a");
    await arrival(far, "PING");
  });

  it("resets all connections at both ends, and accepts new ones", async () => {
    const { client, far } = await connection();
    expect(proxy.connections).toBe(1);
    proxy.cut();
    await until("both ends see it", async () => client.error === "ECONNRESET" && far.error === "ECONNRESET");
    expect(proxy.connections).toBe(0);
    const again = await connection();
    again.client.socket.write("request");
    await arrival(again.far, "request");
    expect(proxy.accepted).toBe(2);
  });

  it("loses what open connections carry, while new ones work", async () => {
    const { client, far } = await connection();
    proxy.silence();
    client.socket.write("lost");
    far.socket.write("lost");
    const again = await connection();
    again.client.socket.write("request");
    await arrival(again.far, "request");
    expect([client.text, client.error, far.text, far.error]).toEqual(["", undefined, "", undefined]);
  });

  it("half-closes a connection: the client sees its end and can still send", async () => {
    const { client, far } = await connection();
    proxy.halfClose();
    await until("the client sees the end", async () => client.ended);
    far.socket.write("too late");
    client.socket.write("request");
    await arrival(far, "request");
    expect([client.text, client.error, far.ended]).toEqual(["", undefined, false]);
  });

  it("refuses new connections while open ones continue, and accepts again", async () => {
    const { client, far } = await connection();
    proxy.refuse();
    const refused = endOf(connect(proxy.port, proxy.host));
    await until("it is refused", async () => refused.error === "ECONNREFUSED");
    client.socket.write("request");
    await arrival(far, "request");
    await proxy.accept();
    const again = await connection();
    again.far.socket.write("reply");
    await arrival(again.client, "reply");
  });

  it("resets connections if the server is down", async () => {
    server.close();
    const client = endOf(connect(proxy.port, proxy.host));
    await until("it is reset", async () => client.error === "ECONNRESET");
  });

  it("closes connections when the server closes them", async () => {
    const { client, far } = await connection();
    far.socket.resetAndDestroy();
    await until("the client sees it", async () => client.error === "ECONNRESET");
  });

  it("closes its port and its connections when it is stopped", async () => {
    const { client } = await connection();
    proxy.stop();
    await until("the client sees it", async () => client.error === "ECONNRESET");
    const refused = endOf(connect(proxy.port, proxy.host));
    await until("it is refused", async () => refused.error === "ECONNREFUSED");
  });
});
