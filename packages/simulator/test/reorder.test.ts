import { expect, it } from "vitest";
import { formatOf, type LogRequest } from "../src/index.js";
import { ReorderBuffer } from "../src/read/reorder.js";
import { randomNumbers } from "./logs.js";

const format = formatOf("combined");
const keeps = { targets: true, lines: true };
const requestAt = (timeMs: number, target = "/"): LogRequest => ({ timeMs, address: "192.0.2.1", method: "GET", target, line: "", format });

function sorted(requests: readonly LogRequest[], size: number): LogRequest[] {
  const buffer = new ReorderBuffer(size, keeps);
  const out: LogRequest[] = [];
  for (const request of requests) {
    buffer.add(request, request.address, 10);
    while (buffer.isFull) out.push(buffer.take() as LogRequest);
  }
  for (let next = buffer.take(); next !== undefined; next = buffer.take()) out.push(next);
  return out;
}

it("requests that are out of order by less than the buffer are sorted, and those of one time stay in their order", () => {
  const random = randomNumbers(3);
  const requests = Array.from({ length: 2000 }, (_, i) => requestAt(Math.floor(i / 3) + Math.floor(random() * 15), `/${i}`));
  const expected = [...requests].sort((a, b) => a.timeMs - b.timeMs);
  expect(sorted(requests, 60)).toMatchObject(expected);
  expect(sorted(requests, 2000)).toMatchObject(expected);
});

it("a buffer of one request sorts neighbours, and loses none", () => {
  expect(
    sorted(
      [2, 1, 3, 5, 4, 0].map((timeMs) => requestAt(timeMs)),
      1,
    ).map(({ timeMs }) => timeMs),
  ).toEqual([1, 2, 3, 4, 0, 5]);
});

it("long lines fill the buffer sooner", () => {
  const buffer = new ReorderBuffer(1000, keeps);
  for (let i = 0; i < 64; i++) buffer.add(requestAt(i), undefined, 1024 * 1024);
  expect(buffer.isFull).toBe(false);
  buffer.add(requestAt(64), undefined, 1024 * 1024);
  expect(buffer.isFull).toBe(true);
  expect(buffer.take()?.timeMs).toBe(0);
  expect(buffer.isFull).toBe(false);
});
