import { type RedisServer, sparePort, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { makeCertificate } from "../../gateway/test/certificate.js";
import { limits, tempFolder } from "./files.js";
import { floodgateProcess } from "./process.js";

const { write } = tempFolder();
const file = write("limits.yaml", limits);

describe("a Redis with TLS, whose certificate is for a name", () => {
  let server: RedisServer;
  let url: string;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    const { certificate, key } = await makeCertificate("localhost", []);
    const authority = write("certificate.pem", certificate);
    const port = await sparePort();
    server = await startRedis({
      config: {
        "tls-port": port,
        "tls-cert-file": authority,
        "tls-key-file": write("key.pem", key),
        "tls-ca-cert-file": authority,
        "tls-auth-clients": "no",
        "tls-cluster": "yes",
        "cluster-enabled": "yes",
        "cluster-announce-hostname": "localhost",
        "cluster-preferred-endpoint-type": "hostname",
      },
    });
    await server.command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
    await vi.waitUntil(async () => String(await server.command("CLUSTER", "INFO")).includes("cluster_state:ok"), { timeout: 20_000 });
    url = `rediss://localhost:${port}`;
    env = { NODE_EXTRA_CA_CERTS: authority };
  }, 60_000);
  afterAll(() => server?.stop());

  it.each([
    ["as one server", []],
    ["as a Cluster", ["--cluster"]],
  ])(
    "answers %s",
    async (_, more) => {
      expect(await floodgateProcess(["push", file, "--redis", url, ...more], { env })).toMatchObject({ code: 0, err: "" });
    },
    60_000,
  );

  it.each([
    ["as one server", []],
    ["as a Cluster", ["--cluster"]],
  ])(
    "is refused %s if nobody has said that it can be trusted",
    async (_, more) => {
      const { code, err } = await floodgateProcess(["pull", "--redis", url, ...more]);
      expect(code).toBe(2);
      expect(err).toContain("self-signed certificate. If you trust its authority, name the file in NODE_EXTRA_CA_CERTS");
    },
    60_000,
  );

  it("is refused by its address", async () => {
    const { code, err } = await floodgateProcess(["pull", "--redis", url.replace("localhost", "127.0.0.1")], { env });
    expect(code).toBe(2);
    expect(err).toContain("IP: 127.0.0.1 is not in the cert's list");
  }, 60_000);
});
