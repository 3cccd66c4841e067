import { readFileSync } from "node:fs";
import { join } from "node:path";
import { documentOf, type MarkdownFile, repository } from "@floodgate/docs";

// The site's home is made of what other documents say, so that nothing is said twice.

/** Where the first example for each framework is: a document, and the heading of the example. */
const frameworks: Readonly<Record<string, readonly [file: string, anchor: string]>> = {
  Express: ["docs/getting-started.md", "express"],
  Koa: ["docs/getting-started.md", "koa"],
  Hono: ["docs/getting-started.md", "hono"],
  Fastify: ["packages/fastify/README.md", "floodgatefastify"],
  NestJS: ["packages/nestjs/README.md", "floodgatenestjs"],
  fetch: ["docs/getting-started.md", "request-and-response"],
  node: ["docs/getting-started.md", "node"],
};

/** @param onSite answers the text of a document with the links of the site, line by line. */
export function home(onSite: (document: MarkdownFile) => string): string {
  const readme = documentOf("README.md");
  const contents = documentOf("docs/index.md");
  const { version } = JSON.parse(readFileSync(join(repository, "packages/core/package.json"), "utf8"));
  const section = (anchor: string) => sectionOf(readme, onSite(readme), anchor);
  const answer = readme.blocks.find(({ language }) => language === "http")?.code.trimEnd();
  return `# Floodgate

${onSite(readme).split("\n")[2]}

[Get started](getting-started.md) · [Find what you need](#limit-requests)

::: code-group

${Object.entries(frameworks)
  .map(([name, place]) => example(name, ...place))
  .join("\n\n")}

:::

## What a client sees

Each client IP gets 100 requests a minute, and every response says how many are left. The next request gets this:

\`\`\`http
${answer}
\`\`\`

## Algorithms

The same requests meet three of the eight algorithms. The page decides each request here, with the code that runs on a server.

<iframe class="algorithms" src="/algorithms.html#embedded" title="Three algorithms, playing" loading="lazy"></iframe>

[All algorithms, with your limit and your requests](algorithms.html) · [Which one to choose](choosing-an-algorithm.md)

${section("three-recipes")}

[More about logins](limit-by-user.md#logins) · [Plans and costs](plans-and-costs.md) · [Redis](redis.md)

${section("beside-two-others")}

## Version and source

This is version ${version}: [what changed](project/changelog.md), and [how it is built and tested](project/contributing.md). Each package on npm
has its TypeScript source in \`src\`. The license is MIT. The version is below 1.0, so the API may still change.

${onSite(contents)
  .split("\n")
  .slice((contents.headings.find(({ level }) => level === 2)?.line ?? 1) - 1)
  .join("\n")}`;
}

/** A heading, and what stands under it. */
function sectionOf({ file, headings }: MarkdownFile, text: string, anchor: string): string {
  const at = headings.findIndex((heading) => heading.anchor === anchor);
  const heading = headings[at];
  if (heading === undefined) throw new Error(`${file} has no heading ${anchor}: the home of the site is made of it`);
  const next = headings.slice(at + 1).find(({ level }) => level <= heading.level);
  return text
    .split("\n")
    .slice(heading.line - 1, next === undefined ? undefined : next.line - 1)
    .join("\n")
    .trim();
}

/** The tab of a framework. The line that adds the limit is highlighted. */
function example(name: string, file: string, anchor: string): string {
  const blocks = documentOf(file).blocks.filter(({ under }) => under.includes(anchor));
  const install = blocks.find(({ language }) => language === "sh")?.code.trimEnd();
  const code = blocks.find(({ language }) => language === "ts")?.code.trimEnd();
  const text = `// ${install}\n\n${code}`;
  const line = text.split("\n").findIndex((written) => /(?:rateLimit|forRoot)\(\{ limit: 100/.test(written)) + 1;
  if (install === undefined || line === 0) throw new Error(`${file} has no example of ${name}`);
  return `\`\`\`ts {${line}} [${name}]\n${text}\n\`\`\``;
}
