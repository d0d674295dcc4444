// Builds the four bundles and the chunks into ../tinyexplore/static (they are committed); `--check` compares instead of writing,
// `--tests` builds the unit tests into build/test, `--watch` rebuilds on every change.
import { readFile, writeFile, mkdir, rm } from "node:fs/promises";
import { existsSync, readdirSync, watch } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = ["es2022", "chrome111", "firefox115", "safari16.4"];

/** A style sheet becomes a string, minified and with its nesting lowered. */
const cssText = {
  name: "css-text",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path: file }) => {
      const source = await readFile(file, "utf8");
      const { code } = await esbuild.transform(source, { loader: "css", minify: true, target });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

const plain = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  target,
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};

/** layout_unit.ts and all it imports become one function that needs nothing outside, so that its text is a worker's too. */
const unit = {
  name: "unit",
  setup(build) {
    build.onLoad({ filter: /\/src\/layout_unit\.ts$/ }, async ({ path: file }) => {
      const options = { ...plain, entryPoints: [file], write: false, metafile: true };
      const [asModule, asFunction] = await Promise.all([
        esbuild.build({ ...options, format: "esm", outfile: "unit.js" }),
        esbuild.build({ ...options, format: "iife", globalName: "unit" }),
      ]);
      const { outputs, inputs } = asModule.metafile;
      const names = outputs["unit.js"].exports.filter((name) => name !== "source");
      const contents = `function made() { ${asFunction.outputFiles[0].text} return unit; }
        export const source = made.toString();
        export const { ${names.join(", ")} } = made();`;
      return { contents, loader: "js", watchFiles: Object.keys(inputs).map((name) => path.resolve(here, name)) };
    });
  },
};

/** A live page's worker, live/worker.ts with all it imports, becomes the text of a script. */
const worker = {
  name: "worker",
  setup(build) {
    build.onLoad({ filter: /\/src\/live\/worker\.ts$/ }, async ({ path: file }) => {
      const made = await esbuild.build({ ...plain, entryPoints: [file], write: false, format: "iife", metafile: true });
      const watchFiles = Object.keys(made.metafile.inputs).map((name) => path.resolve(here, name));
      return { contents: made.outputFiles[0].text, loader: "text", watchFiles };
    });
  },
};

/** A Python file becomes a string: its text, gzipped, in base64. */
const packed = {
  name: "packed",
  setup(build) {
    build.onLoad({ filter: /\.py$/ }, async ({ path: file }) => {
      const contents = gzipSync(await readFile(file), { level: 9 }).toString("base64");
      return { contents, loader: "text", watchFiles: [file] };
    });
  },
};

const common = { ...plain, plugins: [cssText, unit, packed, worker] };

// The byte limits of the two entry points, in package.json. A notebook stores explorer.js once for each explorer, beside
// a trace of 0.2 to 1 MB, and every page contains standalone.js. A panel that the first view does not show is a chunk
// (src/chunks, one entry a chunk): it is compressed, and the browser parses it when the reader first opens it.
const { budgets } = JSON.parse(await readFile(path.join(here, "package.json"), "utf8"));
const entries = [
  { entryPoints: ["src/anywidget.ts"], format: "esm", outfile: "../tinyexplore/static/explorer.js" },
  { entryPoints: ["src/view_widget.ts"], format: "esm", outfile: "../tinyexplore/static/view_widget.js" },
  { entryPoints: ["src/standalone.ts"], format: "iife", outfile: "../tinyexplore/static/standalone.js" },
  { entryPoints: ["src/live.ts"], format: "iife", outfile: "../tinyexplore/static/live.js" }, // only in live pages
];
const chunks = readdirSync(path.join(here, "src/chunks")).map((name) => path.basename(name, ".ts"));

/** The key of a module in "core:shared": its path without "src/" and ".ts". */
const keyOf = (name) => name.slice("src/".length, -".ts".length);

/** "core:shared" is an object of what chunks use of the core: by module, then by name. `used`: the names by path. */
const sharing = (used) => ({
  name: "sharing",
  setup(build) {
    build.onResolve({ filter: /^core:shared$/ }, () => ({ path: "shared", namespace: "core" }));
    build.onLoad({ filter: /.*/, namespace: "core" }, () => {
      const modules = [...used].map(([file, names], i) => ({ file, names, i }));
      const imports = modules.map(({ file, names, i }) => {
        const list = names.map((name) => `${name} as ${name}${i}`).join(", ");
        return `import { ${list} } from ${JSON.stringify(`./${file}`)};`;
      });
      const members = modules.map(({ file, names, i }) => {
        const list = names.map((name) => `${name}: ${name}${i}`).join(", ");
        return `${JSON.stringify(keyOf(file))}: { ${list} }`;
      });
      return {
        contents: `${imports.join("\n")}\nexport const shared = { ${members.join(", ")} };`,
        loader: "js",
        resolveDir: here,
      };
    });
  },
});

/** In a chunk, the modules of the core are those that it is given. `used`: the names that chunks use, by path. */
const taking = (used) => ({
  name: "taking",
  setup(build) {
    build.onResolve({ filter: /^\./ }, async ({ path: wanted, importer, resolveDir, kind, pluginData }) => {
      if (pluginData === "resolving") return undefined;
      const found = await build.resolve(wanted, { importer, resolveDir, kind, pluginData: "resolving" });
      const name = path.relative(here, found.path);
      return used.has(name) ? { path: name, namespace: "given" } : found;
    });
    build.onLoad({ filter: /.*/, namespace: "given" }, ({ path: name }) => {
      return {
        contents: `export const { ${used.get(name).join(", ")} } = core[${JSON.stringify(keyOf(name))}];`,
        loader: "js",
      };
    });
  },
});

/** Returns the names that a TypeScript file imports, by the text of the import's path. */
function importedNames(source) {
  const names = new Map();
  for (const [, list, from] of source.matchAll(/(?:import|export) (?:\w+, )?\{([^}]*)\} from "([^"]+)"/g)) {
    const values = list.split(",").map((item) => item.trim().split(" as ")[0]);
    names.set(from, [...(names.get(from) ?? []), ...values]);
  }
  return names;
}

/**
 * Returns what chunks use of the core: the names, sorted, by the path of their module. A module that two chunks have in
 * common belongs to the core.
 */
async function sharedNames() {
  const measured = async (entryPoints) => {
    const options = {
      ...common,
      plugins: [...common.plugins, sharing(new Map())],
      entryPoints,
      write: false,
      metafile: true,
      outdir: "out",
    };
    return (await esbuild.build({ ...options, format: "esm" })).metafile;
  };
  const core = new Set(Object.keys((await measured(["src/anywidget.ts", "src/standalone.ts"])).inputs));
  const users = new Map();
  const importers = new Map();
  for (const chunk of chunks) {
    const { inputs } = await measured([`src/chunks/${chunk}.ts`]);
    for (const name of Object.keys(inputs).filter((input) => !core.has(input))) {
      importers.set(name, inputs[name].imports);
      for (const { path: file } of inputs[name].imports) {
        if (!users.has(file)) users.set(file, new Set());
        users.get(file).add(chunk);
      }
    }
  }
  const files = [...users.keys()]
    .filter((name) => name.endsWith(".ts") && (core.has(name) || users.get(name).size > 1))
    .sort();
  if (files.length === 0) return new Map();
  const outputs = Object.values((await measured(files)).outputs);
  const exported = new Map(files.map((file) => [file, outputs.find(({ entryPoint }) => entryPoint === file).exports]));
  const used = new Map(files.map((file) => [file, new Set()]));
  for (const [importer, imports] of importers) {
    const names = importedNames(await readFile(path.join(here, importer), "utf8"));
    for (const { path: file, original } of imports) {
      if (!used.has(file)) continue;
      for (const name of names.get(original) ?? []) if (exported.get(file).includes(name)) used.get(file).add(name);
    }
  }
  return new Map([...used].map(([file, names]) => [file, [...names].sort()]));
}

/** Every file to build: its path, and how to make its text. */
async function files() {
  const used = await sharedNames();
  const plugins = [...common.plugins, sharing(used)];
  const whole = entries.map((entry) => ({ file: entry.outfile, text: () => textOf({ ...common, ...entry, plugins }) }));
  const pieces = chunks.map((name) => {
    const options = {
      ...common,
      plugins: [taking(used), ...common.plugins],
      entryPoints: [`src/chunks/${name}.ts`],
      format: "iife",
      globalName: "chunk",
    };
    const text = async () => `export default(core)=>{${(await textOf(options)).trim()}return chunk};\n`;
    return { file: `../tinyexplore/static/chunks/${name}.js`, text };
  });
  return [...whole, ...pieces];
}

async function textOf(options) {
  const { outputFiles } = await esbuild.build({ ...options, write: false });
  return outputFiles[0].text;
}

async function buildTests() {
  const tests = readdirSync(path.join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  await esbuild.build({
    ...common,
    minify: false,
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: "inline",
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: "build/test",
    outExtension: { ".js": ".mjs" },
  });
}

async function check() {
  let stale = false;
  const made = await files();
  for (const { file, text } of made) {
    const place = path.resolve(here, file);
    const same = existsSync(place) && (await readFile(place, "utf8")) === (await text());
    if (same) continue;
    stale = true;
    console.error(`${path.relative(process.cwd(), place)} is not what its sources build to; run: npm run build`);
  }
  for (const left of leftOver(made)) {
    stale = true;
    console.error(`${path.relative(process.cwd(), left)} has no source any more; run: npm run build`);
  }
  process.exit(stale ? 1 : 0);
}

/** Chunks in the package of which there is no source. */
function leftOver(made) {
  const known = new Set(made.map(({ file }) => path.resolve(here, file)));
  const folder = path.resolve(here, "../tinyexplore/static/chunks");
  const there = existsSync(folder) ? readdirSync(folder).map((name) => path.join(folder, name)) : [];
  return there.filter((file) => !known.has(file));
}

async function build() {
  const folder = path.resolve(here, "../tinyexplore/static");
  await mkdir(path.join(folder, "chunks"), { recursive: true });
  const made = await files();
  for (const left of leftOver(made)) await rm(left);
  for (const { file, text } of made) {
    const contents = Buffer.from(await text());
    await writeFile(path.resolve(here, file), contents);
    const name = path.relative(folder, path.resolve(here, file)).replaceAll(path.sep, "/");
    const limit = budgets[name];
    const size = (contents.length / 1000).toFixed(1);
    console.log(limit === undefined ? `${name}  ${size} kB` : `${name}  ${size} of ${limit / 1000} kB`);
    if (limit !== undefined && contents.length > limit) process.exitCode = 1;
  }
}

if (process.argv.includes("--tests")) await buildTests();
else if (process.argv.includes("--check")) await check();
else {
  await build();
  if (process.argv.includes("--watch")) {
    console.log("watching src");
    let waiting;
    watch(path.join(here, "src"), { recursive: true }, () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => void build().catch((error) => console.error(String(error))), 100);
    });
  }
}
