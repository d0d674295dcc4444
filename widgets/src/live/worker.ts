// The worker of a page with engine: it unpacks Python and the engine, starts them, and forwards requests and responses.
// Its text is a classic script, because a page from a file starts no module worker. It never uses the network.

import { PACKED_FILES, type PackedFile, ENGINE, LOCK, type FromWorker, type ToWorker } from "./messages";

const NOWHERE = "https://page.invalid/"; // the address at which Pyodide looks for its files, which are in the page
const HOME = "/page";
const PLAYED = `${HOME}/played.json.gz`; // the trace of a program that a request ran

interface Python {
  FS: { mkdirTree(path: string): void; writeFile(path: string, data: Uint8Array): void; unlink(path: string): void };
  runPython(code: string): unknown;
}

interface PageServer {
  open_file(trace: string, carried: string, recorded: string): string;
  nothing(carried: string): string;
  respond(question: string): string;
}

const unpackedFiles = new Map<string, Uint8Array>();
let serving: PageServer | null = null;
let python:
  | (Python & { FS: { readFile(path: string): Uint8Array; analyzePath(path: string): { exists: boolean } } })
  | null = null;

function post(what: FromWorker): void {
  postMessage(what);
}

// *** unpacking ***

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";

/** Decodes base85 from Python's b85encode, with a comma instead of "<": `block` in packing.py. */
function bytesOf(text: string): Uint8Array {
  const digit = new Uint8Array(128);
  for (let i = 0; i < DIGITS.length; i += 1) digit[DIGITS.charCodeAt(i)] = i;
  const words = Math.ceil(text.length / 5);
  const view = new DataView(new ArrayBuffer(4 * words));
  for (let word = 0; word < words; word += 1) {
    let value = 0;
    for (let k = 5 * word; k < 5 * word + 5; k += 1)
      value = value * 85 + (k < text.length ? digit[text.charCodeAt(k)] : 84);
    view.setUint32(4 * word, value);
  }
  return new Uint8Array(view.buffer, 0, 4 * words - (5 * words - text.length));
}

async function unpack(files: PackedFile[]): Promise<void> {
  const total = files.reduce((sum, { text }) => sum + text.length, 0);
  let done = 0;
  const unpackFile = async ({ name, text }: PackedFile): Promise<void> => {
    const stream = new Blob([bytesOf(text) as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpackedFiles.set(name, new Uint8Array(await new Response(stream).arrayBuffer()));
    done += text.length;
    post({ type: "progress", text: "unpacking Python", done: (done * 4) / 5, of: (total * 4) / 5 });
  };
  await Promise.all(files.map(unpackFile));
}

/** Returns the files of an uncompressed archive, by name. */
function filesOf(archive: Uint8Array): [name: string, data: Uint8Array][] {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength);
  const end = archive.length - 22; // the last record of the archive, without a comment
  let offset = view.getUint32(end + 16, true);
  return Array.from({ length: view.getUint16(end + 10, true) }, () => {
    const [size, name, extra, comment] = [
      view.getUint32(offset + 20, true),
      view.getUint16(offset + 28, true),
      view.getUint16(offset + 30, true),
      view.getUint16(offset + 32, true),
    ];
    const headerAt = view.getUint32(offset + 42, true);
    const start = headerAt + 30 + view.getUint16(headerAt + 26, true) + view.getUint16(headerAt + 28, true);
    const file: [string, Uint8Array] = [
      new TextDecoder().decode(archive.subarray(offset + 46, offset + 46 + name)),
      archive.subarray(start, start + size),
    ];
    offset += 46 + name + extra + comment;
    return file;
  });
}

function writeAll(fs: Python["FS"], folder: string, archive: Uint8Array): void {
  const folders = new Set<string>();
  for (const [name, data] of filesOf(archive)) {
    const path = `${folder}/${name}`;
    const parent = path.slice(0, path.lastIndexOf("/"));
    if (!folders.has(parent)) fs.mkdirTree(parent);
    folders.add(parent);
    fs.writeFile(path, data);
  }
}

/** Serves requests for files from the page, or reports that a file is missing. */
function serveFromPage(): void {
  globalThis.fetch = (input: RequestInfo | URL): Promise<Response> => {
    const url = input instanceof Request ? input.url : String(input);
    const data = unpackedFiles.get(url.slice(NOWHERE.length));
    if (!url.startsWith(NOWHERE) || data === undefined)
      return Promise.reject(new TypeError(`${url}: blocked, because this page makes no network requests`));
    const type = url.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return Promise.resolve(new Response(data as BodyInit, { headers: { "content-type": type } }));
  };
}

function textOf(name: string): string {
  return new TextDecoder().decode(unpackedFiles.get(name));
}

async function moduleOf(name: string): Promise<Record<string, unknown>> {
  const url = URL.createObjectURL(new Blob([unpackedFiles.get(name)! as BlobPart], { type: "text/javascript" }));
  try {
    return (await import(url)) as Record<string, unknown>;
  } finally {
    URL.revokeObjectURL(url);
  }
}

// *** start ***

async function start({ files, trace, recorded }: Extract<ToWorker, { do: "start" }>): Promise<void> {
  const began = performance.now();
  await unpack(files);
  serveFromPage();
  // Pyodide detects classic workers by this function, and rejects them
  delete (globalThis as { importScripts?: unknown }).importScripts;
  (globalThis as { importScripts?: unknown }).importScripts = undefined;
  post({ type: "progress", text: "starting Python", done: 0, of: 0 });
  const { loadPyodide } = (await moduleOf("pyodide.mjs")) as {
    loadPyodide(options: object): Promise<NonNullable<typeof python>>;
  };
  const loader = await moduleOf("pyodide.asm.mjs");
  python = await loadPyodide({
    indexURL: NOWHERE,
    createPyodideModule: loader.default,
    lockFileContents: JSON.parse(textOf(LOCK)) as object,
    packageBaseUrl: NOWHERE,
    env: { HOME, PYTHONDONTWRITEBYTECODE: "1", CACHELEVEL: "0" },
    stdout: (line: string) => console.debug(line),
    stderr: (line: string) => console.debug(line),
  });
  post({ type: "progress", text: "importing tinyexplore", done: 0, of: 0 });
  python.FS.mkdirTree(HOME);
  writeAll(python.FS, "/engine", unpackedFiles.get(ENGINE)!);
  const make = python.runPython(
    'import sys; sys.path.insert(0, "/engine"); from tinyexplore.explore.live.page_server import PageServer; PageServer',
  ) as (post: (type: "branches" | "working", data: string) => void, played: string) => PageServer;
  serving = make((type, data) => post({ type, data }), PLAYED);
  const beside = textOf(PACKED_FILES);
  unpackedFiles.clear();
  let response: string;
  if (trace === null) response = serving.nothing(beside);
  else {
    post({ type: "progress", text: "compiling its kernels again", done: 0, of: 0 });
    python.FS.writeFile(`${HOME}/trace.json.gz`, trace);
    response = serving.open_file(`${HOME}/trace.json.gz`, beside, recorded);
  }
  post({
    type: "ready",
    seconds: (performance.now() - began) / 1e3,
    ...(JSON.parse(response) as { python: string; live: boolean }),
  });
}

/** Responds to a request, including the trace of a program that it ran. */
function respond(id: number, question: string): void {
  const answer = serving!.respond(question);
  const { FS } = python!;
  if (!FS.analyzePath(PLAYED).exists) return post({ type: "answer", id, answer });
  const trace = FS.readFile(PLAYED);
  FS.unlink(PLAYED);
  post({ type: "answer", id, answer, trace });
}

// Serializes requests: those that arrive while Python starts wait.
let turn: Promise<void> = Promise.resolve();

self.onmessage = ({ data }: MessageEvent<ToWorker>): void => {
  turn = turn.then(async () => {
    try {
      if (data.do === "start") await start(data);
      else respond(data.id, data.question);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (data.do === "start") post({ type: "failed", text });
      else post({ type: "answer", id: data.id, answer: JSON.stringify({ error: findErrorLine(text) }) });
    }
  });
};

/** Returns the line of a Python traceback that names the exception. The lines after it are advice. */
function findErrorLine(text: string): string {
  const lines = text.trim().split("\n");
  return lines.findLast((line) => /^[\w.]+(Error|Exception|Interrupt)\b/.test(line)) ?? lines.at(-1)!;
}

export default ""; // build.mjs replaces this export by the module's own text
