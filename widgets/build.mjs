// Builds the four bundles into ../tinyexplore/static (they are committed); `--check` compares instead of writing,
// `--tests` builds the unit tests into build/test, `--watch` rebuilds on every change.
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { existsSync, readdirSync } from "node:fs";
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

/** layouts.ts and all it imports become one function that needs nothing outside, so that its text is a worker's too. */
const unit = {
  name: "unit",
  setup(build) {
    build.onLoad({ filter: /\/src\/layouts\.ts$/ }, async ({ path: file }) => {
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

const shared = { ...plain, plugins: [cssText, unit, packed, worker] };
// Bytes that each bundle may have, in package.json. A notebook stores explorer.js once for each explorer, beside a trace
// of 0.2 to 1 MB, and every page has standalone.js in it: 325 kB, 30 of them the tuner, 13 the shapes, are less than what they show, 110 kB
// compressed, and parsed in the time of one frame or two. Views are in one file because a page asks for nothing. What
// would break the budget is to be made smaller, or to come with the data it shows (as listings come highlighted).
const { budgets } = JSON.parse(await readFile(path.join(here, "package.json"), "utf8"));
const bundles = [
  { ...shared, entryPoints: ["src/anywidget.ts"], format: "esm", outfile: "../tinyexplore/static/explorer.js" },
  { ...shared, entryPoints: ["src/part.ts"], format: "esm", outfile: "../tinyexplore/static/part.js" },
  { ...shared, entryPoints: ["src/standalone.ts"], format: "iife", outfile: "../tinyexplore/static/standalone.js" },
  { ...shared, entryPoints: ["src/live.ts"], format: "iife", outfile: "../tinyexplore/static/live.js" }, // only in live pages
];

async function buildTests() {
  const tests = readdirSync(path.join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  await esbuild.build({
    ...shared,
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
  for (const options of bundles) {
    const file = path.resolve(here, options.outfile);
    const { outputFiles } = await esbuild.build({ ...options, write: false });
    const same = existsSync(file) && Buffer.compare(await readFile(file), Buffer.from(outputFiles[0].contents)) === 0;
    if (same) continue;
    stale = true;
    console.error(`${path.relative(process.cwd(), file)} is not what its sources build to; run: npm run build`);
  }
  process.exit(stale ? 1 : 0);
}

async function build() {
  await mkdir(path.resolve(here, "../tinyexplore/static"), { recursive: true });
  for (const options of bundles) {
    const { outputFiles } = await esbuild.build({ ...options, write: false });
    await writeFile(path.resolve(here, options.outfile), outputFiles[0].contents);
    const name = path.basename(options.outfile);
    const size = outputFiles[0].contents.length;
    console.log(`${name}  ${(size / 1000).toFixed(1)} of ${budgets[name] / 1000} kB`);
    if (size > budgets[name]) process.exitCode = 1;
  }
}

if (process.argv.includes("--tests")) await buildTests();
else if (process.argv.includes("--check")) await check();
else if (process.argv.includes("--watch")) {
  for (const options of bundles) await (await esbuild.context({ ...options, logLevel: "info" })).watch();
} else await build();
