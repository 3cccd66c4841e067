import type { AddressInfo } from "node:net";
import type { INestApplication, ModuleMetadata } from "@nestjs/common";
import { HttpException, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";

export const platforms = [
  ["Express", () => new ExpressAdapter()],
  ["Fastify", () => new FastifyAdapter()],
] as const;

/** Whether these tests run with Nest 11: see `nest-11` in vitest.config.ts. */
export const isNest11 = !("errorCode" in new HttpException("", 400));

/** Nest 11 takes another type for a mistake of the app. */
export const problemType = isNest11 ? "application/json" : "application/problem+json";

/** An app that a test has started, and the address at which it listens. */
export interface Serving {
  readonly app: INestApplication;
  readonly url: string;
}

/** Starts an app, runs a test against it, and closes it. */
export async function serving(
  metadata: ModuleMetadata,
  run: (serving: Serving) => Promise<void>,
  {
    platform = platforms[0][1],
    prepare,
  }: { platform?: (typeof platforms)[number][1]; prepare?: (app: INestApplication) => void | Promise<void> } = {},
): Promise<void> {
  @Module(metadata)
  class App {}

  const app = await NestFactory.create(App, platform(), { logger: false, abortOnError: false });
  await prepare?.(app);
  await app.listen(0, "127.0.0.1");
  try {
    await run({ app, url: `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}` });
  } finally {
    await app.close();
  }
}

/** The statuses of `count` requests. */
export async function statuses(url: string, count = 3, init: RequestInit = {}): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push((await fetch(url, init)).status);
  return all;
}
