import Ajv2020, { type ValidateFunction } from "ajv/dist/2020.js";
import { expect } from "vitest";

/** An answer of the API. */
export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: JSON, which the OpenAPI description describes
  readonly body: any;
  readonly headers: Headers;
}

export type Post = (path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>;

interface Description {
  readonly paths: Record<string, { post: { responses: Record<string, Response> } }>;
  readonly components: { responses: Record<string, Response> };
}

interface Response {
  readonly $ref?: string;
  readonly content?: Record<string, unknown>;
}

/** Posts JSON to the API, and checks each answer against the API's own OpenAPI description. */
export async function apiClient(origin: string, token?: string): Promise<Post> {
  const description = (await (await fetch(`${origin}/v1/openapi.json`)).json()) as Description;
  const ajv = new Ajv2020({ strict: false });
  ajv.addSchema(description, "api");
  const validators = new Map<string, ValidateFunction>();
  const validator = (path: string, status: number, type: string): ValidateFunction | undefined => {
    const own = description.paths[path]?.post.responses[status];
    if (own === undefined) return undefined;
    const name = own.$ref?.split("/").at(-1);
    const content = (name === undefined ? own : description.components.responses[name])?.content ?? {};
    if (!(type in content)) return undefined;
    const at = name === undefined ? `paths/${path.replaceAll("/", "~1")}/post/responses/${status}` : `components/responses/${name}`;
    const reference = `api#/${at}/content/${encodeURIComponent(type.replaceAll("/", "~1"))}/schema`;
    const known = validators.get(reference) ?? ajv.compile({ $ref: reference });
    validators.set(reference, known);
    return known;
  };
  return async (path, body, headers = {}) => {
    const text = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
    const response = await fetch(origin + path, {
      method: "POST",
      body: text,
      headers: { "Content-Type": "application/json", ...(token !== undefined && { Authorization: `Bearer ${token}` }), ...headers },
    });
    const answered = await response.text();
    const json: unknown = answered === "" ? undefined : JSON.parse(answered);
    if (path in description.paths) {
      expect(Object.keys(description.paths[path]?.post.responses ?? {})).toContain(`${response.status}`);
      if (json !== undefined) {
        const validate = validator(path, response.status, response.headers.get("content-type") ?? "");
        expect(validate, `no schema for ${response.status} of ${path}`).toBeDefined();
        expect(validate?.(json), JSON.stringify([validate?.errors, json])).toBe(true);
      }
    }
    return { status: response.status, body: json, headers: response.headers };
  };
}
