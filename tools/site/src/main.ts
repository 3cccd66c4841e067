import { rmSync, watch } from "node:fs";
import { join, relative } from "node:path";
import { repository } from "@floodgate/docs";
import { build, createServer } from "vitepress";
import { writeApi } from "./api.js";
import { content, writeContent } from "./content.js";
import { writeMarkdown } from "./llms.js";

// npm run site: builds the site. npm run site:dev: serves it, and shows each change of a document at once.

const site = join(repository, "tools/site");
const output = join(repository, "dist/site");
rmSync(content, { recursive: true, force: true });
await writeApi(join(content, "api"));
writeContent();

if (process.argv[2] === "dev") {
  const server = await createServer(site, { host: "127.0.0.1" });
  await server.listen();
  server.printUrls();
  for (const folder of ["docs", "packages", "examples"]) watch(join(repository, folder), { recursive: true }, changed);
  watch(repository, changed);
} else {
  await build(site);
  writeMarkdown(output);
  console.log(`The site is in ${relative(process.cwd(), output)}. Any web server for files can serve it.`);
}

function changed(_: string, file: string | null): void {
  if (file?.endsWith(".md") && !file.includes("node_modules")) writeContent();
}
