import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { promisify } from "node:util";

export const root = join(import.meta.dirname, "..");
export const folders = readdirSync(join(root, "packages")).sort();
export const manifests = folders.map((folder) => JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8")));
export const names: string[] = manifests.map(({ name }) => name);

/** What a user can import: each package, and its other entry points. */
export const entries: string[] = manifests.flatMap(({ name, exports }) =>
  Object.keys(exports)
    .filter((path) => !path.endsWith(".json"))
    .map((path) => `${name}${path.slice(1)}`),
);

export const temp = mkdtempSync(join(tmpdir(), "floodgate-packages-"));
export const project = join(temp, "project");
const versions = new Map<string, string>(manifests.map(({ name, version }) => [name, version]));
export const tarball = (name: string) => join(temp, `${name.replace("@", "").replace("/", "-")}-${versions.get(name)}.tgz`);

export function filesIn(folder: string, kind: string): string[] {
  const files = readdirSync(join(root, "packages", folder, kind), { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile() && !file.name.endsWith(".tsbuildinfo"))
    .map((file) => relative(join(root, "packages", folder), join(file.parentPath, file.name)));
}

/** The README of a package, as it is installed. */
export function readme(folder: string): string {
  return readFileSync(join(project, "node_modules", "@floodgate", folder, "README.md"), "utf8");
}

/** The first example of a package's README. */
export function example(folder: string): string {
  return /```[jt]s\n(.*?)```/s.exec(readme(folder))?.[1] ?? "";
}

/** What a text imports from our packages. */
export function ownImports(text: string): { name: string; from: string }[] {
  return [...text.matchAll(/^import (?:type )?\{([^}]*)\} from "(@floodgate\/[^"]+)"/gm)].flatMap(([, names = "", from = ""]) =>
    names.split(",").map((name) => ({ name: name.replace("type ", "").trim(), from })),
  );
}

export function write(file: string, content: unknown): void {
  writeFileSync(join(project, file), typeof content === "string" ? content : JSON.stringify(content, null, 2));
}

/** Runs a script in the project; answers what it printed. */
export function node(file: string, code: string): Promise<string> {
  write(file, code);
  return run(process.execPath, [file]);
}

export function bin(tool: string): string {
  return join(root, "node_modules", ".bin", tool);
}

/** Runs a command in the project; answers what it printed, and fails with all that it said. */
export async function run(command: string, args: string[], cwd = project): Promise<string> {
  try {
    return (await promisify(execFile)(command, args, { cwd, maxBuffer: 1e8 })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")}\n${stdout ?? error}\n${stderr ?? ""}`);
  }
}

/** Packs all packages, and writes the manifest of a project that has them, beside what apps have. */
export async function packAll(): Promise<void> {
  await run("npx", ["--yes", "pnpm@12", "--recursive", "--filter", "./packages/*", "pack", "--pack-destination", temp], root);
  mkdirSync(project);
  write("package.json", {
    private: true,
    dependencies: {
      ...Object.fromEntries(names.map((name) => [name, `file:${tarball(name)}`])),
      express: "^5.0.0",
      fastify: "^5.0.0",
      hono: "^4.0.0",
      "@hono/node-server": "^2.0.0",
      ioredis: "^6.0.0",
      koa: "^3.0.0",
      // Nest 12 is ES modules only, which Jest and types of CommonJS cannot load. The tests of the package use it.
      "@nestjs/common": "^11.0.0",
      "@nestjs/core": "^11.0.0",
      pg: "^8.0.0",
      redis: "^6.0.0",
      "@opentelemetry/api": "^1.9.0",
      "prom-client": "^15.1.0",
      supertest: "^7.0.0",
      "@types/express": "^5.0.0",
      "@types/koa": "^3.0.0",
      "@types/pg": "^8.0.0",
      // That of @types/koa: the next one has types of its own, other ones.
      "content-disposition": "^1.0.0",
      "@types/node": "^20.19.0",
    },
    // What the packages need of each other are the tarballs too.
    overrides: Object.fromEntries(names.map((name) => [name, `$${name}`])),
  });
}

/** Installs the project. */
export function install(): Promise<string> {
  return run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]);
}
