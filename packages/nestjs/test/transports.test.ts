import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { ApolloDriver, type ApolloDriverConfig } from "@nestjs/apollo";
import {
  type ArgumentsHost,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  type INestApplication,
  UseFilters,
  UseGuards,
} from "@nestjs/common";
import { APP_GUARD } from "@nestjs/core";
import { Args, GraphQLModule, Mutation, Query, Resolver } from "@nestjs/graphql";
import { ClientProxyFactory, MessagePattern, Payload, Transport } from "@nestjs/microservices";
import { IoAdapter } from "@nestjs/platform-socket.io";
import { WsAdapter } from "@nestjs/platform-ws";
import { MessageBody, SubscribeMessage, WebSocketGateway, type WsException } from "@nestjs/websockets";
import { firstValueFrom } from "rxjs";
import { io } from "socket.io-client";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { concurrency, FloodgateGuard, FloodgateModule, type FloodgateModuleOptions, fixedWindow, RateLimit } from "../src/index.js";
import { isNest11, serving } from "./serving.js";

const policy = fixedWindow({ limit: 2, window: "365d" });
const guard = { provide: APP_GUARD, useClass: FloodgateGuard };
const limited = (options: FloodgateModuleOptions = { policy }) => FloodgateModule.forRoot(options);
const rejected = { status: "error", code: "TOO_MANY_REQUESTS", message: expect.stringMatching(/^Rate limit "[\w.]+" exceeded/), retryAfterMs: expect.any(Number) }; // biome-ignore format: a row

/** Nest 11 runs no APP_GUARD for gateways. */
const guardOfGateway: ClassDecorator = isNest11 ? UseGuards(FloodgateGuard) : () => undefined;

@WebSocketGateway()
@guardOfGateway
class Chat {
  @SubscribeMessage("say")
  say(@MessageBody() text: string): object {
    return { event: "said", data: text };
  }

  @SubscribeMessage("shout")
  @RateLimit({ limit: 1, window: "365d" })
  shout(@MessageBody() text: string): object {
    return { event: "shouted", data: text.toUpperCase() };
  }
}

/** By `ws`, Nest 11 sends no exception. */
class SendsExceptions implements ExceptionFilter {
  catch(exception: WsException, host: ArgumentsHost): void {
    host
      .switchToWs()
      .getClient()
      .send(JSON.stringify({ event: "exception", data: exception.getError() }));
  }
}

@WebSocketGateway()
@UseFilters(...(isNest11 ? [SendsExceptions] : []))
class WsChat extends Chat {}

describe("a gateway", () => {
  it("counts each message of ws by the address of its client, and rejects with a WsException", async () => {
    const metadata = { imports: [limited()], providers: [guard, WsChat] };
    const prepare = (app: INestApplication): void => void app.useWebSocketAdapter(new WsAdapter(app));
    await serving(
      metadata,
      async ({ url }) => {
        const client = new WebSocket(url.replace("http", "ws"));
        await once(client, "open");
        const ask = async (event: string): Promise<unknown> => {
          client.send(JSON.stringify({ event, data: "a" }));
          const [message] = await once(client, "message");
          return JSON.parse(String(message));
        };
        const answers = [];
        for (const event of ["say", "say", "say", "shout", "shout"]) answers.push(await ask(event));
        client.close();
        expect(answers).toEqual([
          { event: "said", data: "a" },
          { event: "said", data: "a" },
          { event: "exception", data: rejected },
          { event: "shouted", data: "A" },
          { event: "exception", data: rejected },
        ]);
      },
      { prepare },
    );
  });

  it("gets the slot of a message back after `hold`, because nobody tells when its handler is done", async () => {
    const metadata = { imports: [limited({ policy: concurrency({ limit: 1, hold: "250ms" }) })], providers: [guard, WsChat] };
    const prepare = (app: INestApplication): void => void app.useWebSocketAdapter(new WsAdapter(app));
    await serving(
      metadata,
      async ({ url }) => {
        const client = new WebSocket(url.replace("http", "ws"));
        await once(client, "open");
        const ask = async (): Promise<unknown> => {
          client.send(JSON.stringify({ event: "say", data: "a" }));
          const [message] = await once(client, "message");
          return JSON.parse(String(message)).event;
        };
        expect(await ask()).toBe("said");
        await expect.poll(ask).toBe("said");
        client.close();
      },
      { prepare },
    );
  });

  const key = (context: ExecutionContext): string => context.switchToWs().getClient().handshake.auth.user;
  it.each([
    ["by a key of the connection", { policy, key }, [{ auth: { user: "ann" } }, { auth: { user: "bob" } }]],
    [
      "by address, behind a proxy by clientIp",
      { policy, clientIp: { trustedHops: 1 } },
      ["198.51.100.1", "198.51.100.2"].map((address) => ({ extraHeaders: { "x-forwarded-for": address } })),
    ],
  ])("counts each message of Socket.IO %s", async (_by, options, clients) => {
    const says = async (url: string, client: object): Promise<unknown[]> => {
      const socket = io(url, { transports: ["websocket"], ...client });
      const heard: unknown[] = [];
      socket.on("said", (data) => heard.push(data)).on("exception", (error) => heard.push(error));
      for (let i = 0; i < 3; i++) socket.emit("say", "a");
      await expect.poll(() => heard.length).toBe(3);
      socket.close();
      return heard;
    };
    await serving(
      { imports: [limited(options)], providers: [guard, Chat] },
      async ({ url }) => {
        for (const client of clients) expect(await says(url, client)).toEqual(["a", "a", rejected]);
      },
      { prepare: (app) => void app.useWebSocketAdapter(new IoAdapter(app)) },
    );
  });
});

it("a microservice counts by a key of the message, and rejects with an RpcException", async () => {
  @Controller()
  class Sums {
    @MessagePattern("sum")
    sum(@Payload() { numbers }: { numbers: number[] }): number {
      return numbers.reduce((sum, number) => sum + number, 0);
    }

    @MessagePattern("by-address")
    @RateLimit({ key: "ip" })
    byAddress(): string {
      return "never";
    }
  }
  const key = (context: ExecutionContext): string => context.switchToRpc().getData().caller;
  let port = 0;
  await serving(
    { imports: [limited({ policy, key })], providers: [guard], controllers: [Sums] },
    async () => {
      const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { port } });
      const ask = (pattern: string, data: object): Promise<unknown> =>
        firstValueFrom(client.send(pattern, data)).catch((error: unknown) => error);
      const answers = [];
      for (const caller of ["ann", "ann", "ann", "bob"]) answers.push(await ask("sum", { caller, numbers: [1, 2] }));
      expect(answers).toEqual([3, 3, rejected, 3]);
      // A message has no address. It is an error, and never unlimited.
      expect(await ask("by-address", {})).toMatchObject({ status: "error", message: "Internal server error" });
      client.close();
    },
    {
      prepare: async (app) => {
        const service = app.connectMicroservice(
          { transport: Transport.TCP, options: { port: 0, host: "127.0.0.1" } },
          { inheritAppConfig: true },
        );
        await app.startAllMicroservices();
        port = (service.unwrap<Server>().address() as AddressInfo).port;
      },
    },
  );
});

describe("a GraphQL operation", () => {
  @Resolver()
  class Numbers {
    @Query()
    one(): number {
      return 1;
    }

    @Mutation()
    @RateLimit({ limit: 2, window: "365d", name: "double" })
    double(@Args("of") of: number): number {
      return 2 * of;
    }
  }

  it("counts each field, also under several aliases, and rejects with an error that clients can read", async () => {
    const metadata = {
      imports: [
        limited(),
        GraphQLModule.forRoot<ApolloDriverConfig>({
          driver: ApolloDriver,
          typeDefs: "type Query { one: Int } type Mutation { double(of: Int!): Int }",
        }),
      ],
      providers: [guard, Numbers],
    };
    await serving(metadata, async ({ url }) => {
      const send = async (
        query: string,
      ): Promise<{ response: Response; body: { data: unknown; errors: { extensions: object; message: string }[] } }> => {
        const response = await fetch(`${url}/graphql`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query }) }); // biome-ignore format: a row
        return { response, body: (await response.json()) as never };
      };
      const { response, body } = await send("{ one }");
      expect([body.data, response.headers.get("ratelimit")]).toEqual([{ one: 1 }, expect.stringMatching(/^"default";r=1;t=\d+$/)]);
      const twice = await send("mutation { a: double(of: 1) b: double(of: 2) }");
      expect([twice.body.data, twice.response.headers.get("ratelimit")]).toEqual([
        { a: 2, b: 4 },
        expect.stringMatching(/^"double";r=0;t=\d+$/),
      ]);
      const { errors } = (await send("mutation { a: double(of: 1) }")).body;
      expect(errors).toMatchObject([{ message: expect.stringMatching(/^Rate limit "double" exceeded/), extensions: { code: "TOO_MANY_REQUESTS", retryAfterMs: expect.any(Number) } }]); // biome-ignore format: a row
    });
  });
});
