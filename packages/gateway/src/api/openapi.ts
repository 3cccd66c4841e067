import { z } from "zod";
import * as schemas from "./schemas.js";

/** One operation of the API, all with POST and JSON. */
export interface Operation {
  /** The end of its path, `/v1/<id>`, and the name of the method of `Operations`. */
  readonly id: "check" | "settle" | "refund" | "renew" | "status" | "reset" | "block" | "unblock";
  readonly summary: string;
  readonly body: z.ZodType;
  /** Undefined: it answers 204. */
  readonly answer?: z.ZodType;
  readonly description?: string;
  readonly mayBeLimited?: true;
}

export const operations: readonly Operation[] = [
  {
    id: "check",
    summary: "Check one or several rules, or a request, and take the units if all allow",
    description:
      "A rejection is a result: 200 with `allowed: false`, or 429 if the body says `status: 429`. While Redis is down, the setting `onStoreError` decides, and the answer says `degraded: true`.",
    body: schemas.checkBody,
    answer: schemas.checkAnswer,
    mayBeLimited: true,
  },
  {
    id: "settle",
    summary: "Replace the cost of a check by the real cost, once",
    body: schemas.settleBody,
    answer: schemas.unitsAnswer,
  },
  { id: "refund", summary: "Give back what a check has charged, once", body: schemas.receiptBody, answer: schemas.unitsAnswer },
  {
    id: "renew",
    summary: "Hold the slots of a check on, under the same receipt",
    description: "For `concurrency`. Ask each third of its `hold` while the work runs, and again if no answer came.",
    body: schemas.receiptBody,
    answer: schemas.renewalAnswer,
  },
  { id: "status", summary: "Show what a key has used; changes nothing", body: schemas.targetBody, answer: schemas.statusAnswer },
  { id: "reset", summary: "Clear the usage of a key, and lift its ban", body: schemas.targetBody },
  { id: "block", summary: "Turn a key away for a time, whatever its limit says", body: schemas.blockBody },
  { id: "unblock", summary: "Lift the block of a key, and its ban", body: schemas.targetBody },
];

export function pathOf({ id }: Pick<Operation, "id">): string {
  return `/v1/${id}`;
}

const errors: Readonly<Record<string, string>> = {
  "400": "The body is wrong. `errors` says where.",
  "401": "The bearer token is missing or wrong.",
  "403": "The request comes from a web page.",
  "404": "There is no such rule.",
  "409": "Receipts need the setting `secretFile`; a receipt to renew needs slots.",
  "413": "The body is too large.",
  "415": "The body is not JSON.",
  "500": "The server has failed.",
  "503": "The store does not answer.",
};

/** All schemas with an id, by their ids, as JSON Schema (2020-12, which OpenAPI 3.1 uses). */
function namedSchemas(): Record<string, object> {
  const used = operations.flatMap(({ body, answer = body }) => [body, answer]);
  const { $defs = {} } = z.toJSONSchema(z.union([schemas.problem, ...used]), { unrepresentable: "any" });
  return Object.fromEntries(Object.entries($defs).map(([name, { id: _, ...own }]) => [name, own]));
}

/** The OpenAPI 3.1 description of the API, made from the schemas that check each request. */
export function openApi(needsToken: boolean): object {
  const reference = (schema: z.ZodType): object => ({ $ref: `#/components/schemas/${schema.meta()?.id}` });
  const json = (schema: z.ZodType): object => ({ "application/json": { schema: reference(schema) } });
  const failures = Object.fromEntries(Object.keys(errors).map((status) => [status, { $ref: `#/components/responses/Problem${status}` }]));
  const paths = Object.fromEntries(
    operations.map(({ id, summary, description, body, answer, mayBeLimited }) => {
      const responses = {
        ...(answer === undefined ? { "204": { description: "Done." } } : { "200": { description: "The result.", content: json(answer) } }),
        ...(mayBeLimited === true &&
          answer !== undefined && {
            "429": {
              description: "Rejected, if the body says `status: 429`.",
              headers: { "Retry-After": { schema: { type: "integer" }, description: "In seconds. Missing if no wait helps." } },
              content: json(answer),
            },
          }),
        ...failures,
      };
      const post = { operationId: id, summary, description, requestBody: { required: true, content: json(body) }, responses };
      return [pathOf({ id }), { post }];
    }),
  );
  const responses = Object.fromEntries(
    Object.entries(errors).map(([status, description]) => [
      `Problem${status}`,
      { description, content: { "application/problem+json": { schema: reference(schemas.problem) } } },
    ]),
  );
  const document = {
    openapi: "3.1.0",
    info: {
      title: "Floodgate",
      version: "1",
      description: "Rate limits for services in any language.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    ...(needsToken && { security: [{ token: [] }] }),
    paths,
    components: {
      schemas: namedSchemas(),
      responses,
      ...(needsToken && { securitySchemes: { token: { type: "http", scheme: "bearer" } } }),
    },
  };
  return JSON.parse(JSON.stringify(document).replaceAll('"#/$defs/', '"#/components/schemas/')) as object;
}
