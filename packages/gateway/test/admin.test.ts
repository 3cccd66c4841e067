import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { few, startServe, temporaryFolder } from "./world.js";

test("a dashboard that is closed says which setting opens it, to the visitor and once in a warning", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  onTestFinished(() => warn.mockRestore());
  const { running } = await startServe([few(1000)], { admin: "127.0.0.1:0" });
  const advice = "Set `adminTokenFile`, and it asks for that password.";
  for (let times = 0; times < 2; times++) {
    const answer = await fetch(`http://${running.addresses["admin"]}/dashboard`, { headers: { "x-forwarded-for": "192.0.2.1" } });
    expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining(advice)]);
  }
  expect(warn.mock.calls.flat()).toEqual([
    expect.stringMatching(/^\[floodgate\] FLOODGATE_DASHBOARD_CLOSED: the dashboard has not answered a request, because a proxy /),
  ]);
  expect(`${warn.mock.calls}`).toContain(advice);
  expect(`${warn.mock.calls}`).not.toContain("authorize");
});

test("a dashboard that may not act says which setting allows it", async () => {
  const adminTokenFile = join(temporaryFolder(), "token");
  writeFileSync(adminTokenFile, "hunter2\n");
  chmodSync(adminTokenFile, 0o600);
  const { running } = await startServe([few(1000)], { admin: "127.0.0.1:0", adminTokenFile });
  const answer = await fetch(`http://${running.addresses["admin"]}/dashboard/actions/reset`, {
    method: "POST",
    headers: { authorization: "Bearer hunter2", "sec-fetch-site": "same-origin", "content-type": "application/json" },
    body: "{}",
  });
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining("the setting `dashboardActions`")]);
});
