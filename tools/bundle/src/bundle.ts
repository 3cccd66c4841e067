import { copyFileSync, existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { type OutputOptions, type Plugin, rolldown } from "rolldown";
import type { Package } from "./packages.js";

/**
 * Writes the JavaScript of a package to its `dist`.
 *
 * - `<entry>.js`: CommonJS, flat. What several entry points need is in `shared.js`, so that each class and each state exists once.
 * - `<entry>.mjs`: what `import` loads in Node. It re-exports `<entry>.js`: there is one copy, whichever way it is loaded.
 * - `<entry>.d.mts`: its types.
 * - `module/`: ES modules for bundlers, which use them for `import` and `require` alike (the condition `module`). Each source is a file of its
 *   own: a bundler leaves out the files that an app does not need, but would keep what a larger file does when it is loaded. They end in
 *   `.js`, because Nitro and Nuxt leave an `.mjs` to Node, which would load another file than they copy. So a `package.json` beside them does
 *   not call them CommonJS.
 *
 * A package that is inlined is in both, with its licence beside.
 *
 * Names stay readable in stack traces: nothing is minified. The source maps refer to `src`, which is published too.
 */
export async function bundlePackage(bundled: Package): Promise<void> {
  const dist = join(bundled.path, "dist");
  const written = new Set<string>();
  const write = (file: string, code: string): void => {
    writeFileSync(join(dist, file), code);
    written.add(file);
  };
  const common = await bundle(bundled, [...bundled.entries, ...bundled.programs], {
    dir: dist,
    format: "cjs",
    ...named("[name].js"),
    codeSplitting: { groups: [{ name: "shared", minShareCount: 2 }] },
  });
  for (const file of common) written.add(file);
  for (const entry of bundled.entries) {
    for (const end of ["mjs", "d.mts"]) write(`${entry}.${end}`, `export * from "./${entry}.js";\n`);
  }
  if (bundled.modules) {
    const options = {
      dir: join(dist, "module"),
      format: "es",
      // npm would leave a folder with the name node_modules out of the tarball. Files beside `src` have their path in this repository.
      entryFileNames: ({ name }) => `${name.replace(/^.*node_modules\//, "inlined/").replace(/^packages\/[^/]+\//, "")}.js`,
      preserveModules: true,
      preserveModulesRoot: join(bundled.path, "src"),
    } satisfies OutputOptions;
    for (const file of await bundle(bundled, bundled.entries, options)) written.add(join("module", file));
    write("module/package.json", '{ "sideEffects": false }\n');
  }
  removeOthers(dist, join(bundled.path, "src"), written);
  for (const name of bundled.inlined) {
    const folder = join(bundled.path, "node_modules", name);
    const licence = readdirSync(folder).find((file) => file.startsWith("LICENSE")) as string;
    copyFileSync(join(folder, licence), join(dist, `LICENSE-${name}`));
  }
}

function named(pattern: string): OutputOptions {
  return { entryFileNames: pattern, chunkFileNames: pattern };
}

/** Returns the names of the files that it wrote. */
async function bundle({ path, inlined }: Package, entries: readonly string[], output: OutputOptions): Promise<string[]> {
  const source = join(path, "src");
  const build = await rolldown({
    cwd: path,
    input: Object.fromEntries(entries.map((entry) => [entry, join(source, `${entry}.ts`)])),
    // Dependencies stay what they are. Node's own modules and those of the types alone too.
    external: (id) =>
      !id.startsWith(".") && !id.startsWith(sep) && !id.startsWith(source) && !inlined.includes(id.split("/", 1)[0] as string),
    platform: "node",
    tsconfig: false,
    plugins: [folders(source), texts],
    // As the setting of the compiler.
    transform: { target: "es2022", typescript: { removeClassFieldsWithoutInitializer: true } },
    onLog: (_, { message }) => {
      throw new Error(`${path}: ${message}`);
    },
  });
  const { output: files } = await build.write({
    ...output,
    comments: { legal: false, annotation: true, jsdoc: false },
    esModule: true,
    externalLiveBindings: false,
    generatedCode: { symbols: false },
    minify: false,
    minifyInternalExports: false,
    sourcemap: true,
    sourcemapExcludeSources: true,
    strict: true,
  });
  await build.close();
  return files.map(({ fileName }) => fileName);
}

/** Makes `__dirname` of each source what it would be if its folder of `src` were in `dist`, where the bundle is. */
function folders(source: string): Plugin {
  return {
    name: "folders",
    transform(code, id) {
      const folder = relative(source, dirname(id));
      if (folder === "" || !code.includes("__dirname")) return null;
      const moved = `(__dirname + ${JSON.stringify(`/${folder.split(sep).join("/")}`)})`;
      // Lines stay where they are, which is all that stack traces need.
      return { code: code.replaceAll("__dirname", moved), map: null };
    },
  };
}

/**
 * Lua and HTML are texts, because a bundle of an app has no files beside it. Lua has no comments and no empty lines there, one space as
 * indent, and none behind commas.
 */
const texts: Plugin = {
  name: "texts",
  transform(code, id) {
    if (!/\.(?:lua|html)$/.test(id)) return null;
    const text = id.endsWith(".lua")
      ? code
          .replace(/^ *--.*\n|^\n/gm, "")
          .replace(/^ +/gm, " ")
          .replaceAll(", ", ",")
      : code;
    return { code: `export default ${JSON.stringify(text)};`, map: { mappings: "" }, moduleType: "js" };
  },
};

/** Removes what builds of earlier sources have left: JavaScript, and types of sources that are gone. */
function removeOthers(dist: string, source: string, written: ReadonlySet<string>): void {
  for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    const [, typed] = /^(.*)\.d\.ts(?:\.map)?$/.exec(file) ?? [];
    const isOurs = typed === undefined ? !/\.m?[jt]s(\.map)?$/.test(file) || written.has(file) : existsSync(join(source, `${typed}.ts`));
    if (!isOurs) rmSync(join(dist, file));
  }
}
