// Run by node:test and by Jest, on the built packages.
const { createServer } = require("node:http");
const express = require("express");
const { memoryStore, rateLimit } = require("@floodgate/express");
const { expectLimited, expectNotLimited, testClock, unlimitedStore } = require("@floodgate/testing");

const test = globalThis.test ?? require("node:test").test;

async function responses(store, count) {
  const app = express();
  app.use(rateLimit({ name: "api", limit: 2, window: "1m", store }));
  app.get("/", (_, res) => res.send("hello"));
  const server = createServer(app).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const all = [];
  for (let i = 0; i < count; i++) all.push(await fetch(`http://127.0.0.1:${server.address().port}/`));
  await Promise.all(all.map((response) => response.text()));
  server.close();
  return all;
}

test("a client gets two requests a minute", async () => {
  const clock = testClock();
  const store = memoryStore({ clock });
  const [first, second, third] = await responses(store, 3);
  expectNotLimited(first, { remaining: 1 });
  expectNotLimited(second, { remaining: 0 });
  expectLimited(third, { by: "api", retryAfter: 61 });
});

test("a limit that is off rejects nothing", async () => {
  for (const response of await responses(unlimitedStore(), 5)) expectNotLimited(response, { remaining: 2 });
});

test("this one fails", async () => {
  expectLimited((await responses(memoryStore({ clock: testClock() }), 1))[0]);
});
