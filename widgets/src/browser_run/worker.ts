// Runs a kernel in a worker. The worker's text is this one function, so it must be self-contained.

import type { RunResult, Task } from "./messages";

export const WARM_UP_MS = 120;

export async function runKernel(task: Task, now: () => number, warmUpMs: number): Promise<RunResult> {
  const LINE = 64;
  const PAGE = 65536;
  const SAMPLES = 41;
  const SAMPLE_MS = 4;
  const MOST_MS = 2500;
  const memory = new WebAssembly.Memory({ initial: 1, maximum: PAGE });
  const { instance } = await WebAssembly.instantiate(task.wasm, { tinyexplore: { memory } });
  const run = instance.exports[task.name] as (...args: (number | bigint)[]) => void;
  const scratch = instance.exports.scratch as WebAssembly.Global | undefined;
  let end = LINE;
  const take = (bytes: number): number => {
    const start = end;
    end = Math.ceil((start + bytes) / LINE) * LINE;
    return start;
  };
  const places = task.buffers.map(([, bytes]) => take(bytes));
  const args: number[] = [...places, ...task.values];
  if (scratch !== undefined) args.push(take(scratch.value as number));
  const missing = Math.ceil(end / PAGE) - 1;
  if (missing > 0) memory.grow(missing);

  const half = (bits: number): number => {
    const size = bits & 0x7fff;
    const value =
      size >= 0x7c00
        ? size > 0x7c00
          ? NaN
          : Infinity
        : size < 0x400
          ? size * 2 ** -24
          : (1 + (size & 0x3ff) / 1024) * 2 ** ((size >> 10) - 15);
    return bits & 0x8000 ? -value : value;
  };
  const widths: Record<string, number> = {
    bool: 1,
    int8: 1,
    uint8: 1,
    int16: 2,
    uint16: 2,
    float16: 2,
    bfloat16: 2,
    int32: 4,
    uint32: 4,
    float32: 4,
  };
  const widthOf = (dtype: string): number => widths[dtype] ?? (dtype.startsWith("fp8") ? 1 : 8);
  const read = (view: DataView, offset: number, dtype: string): number => {
    switch (dtype) {
      case "float32":
        return view.getFloat32(offset, true);
      case "float64":
        return view.getFloat64(offset, true);
      case "float16":
        return half(view.getUint16(offset, true));
      case "bfloat16": {
        const word = new DataView(new ArrayBuffer(4));
        word.setUint32(0, view.getUint16(offset, true) << 16, true);
        return word.getFloat32(0, true);
      }
      case "int8":
        return view.getInt8(offset);
      case "int16":
        return view.getInt16(offset, true);
      case "uint16":
        return view.getUint16(offset, true);
      case "int32":
        return view.getInt32(offset, true);
      case "uint32":
        return view.getUint32(offset, true);
      case "int64":
        return Number(view.getBigInt64(offset, true));
      case "uint64":
        return Number(view.getBigUint64(offset, true));
      default:
        return view.getUint8(offset);
    }
  };
  const write = (view: DataView, offset: number, dtype: string, value: number): void => {
    if (dtype === "float32") view.setFloat32(offset, value, true);
    else if (dtype === "float64") view.setFloat64(offset, value, true);
    else if (dtype === "float16")
      view.setUint16(
        offset,
        value === 0
          ? 0
          : ((Math.floor(Math.log2(value)) + 15) << 10) | ((value / 2 ** Math.floor(Math.log2(value)) - 1) * 1024),
        true,
      );
    else if (dtype === "bfloat16") {
      const word = new DataView(new ArrayBuffer(4));
      word.setFloat32(0, value, true);
      view.setUint16(offset, word.getUint32(0, true) >>> 16, true);
    } else if (dtype === "bool") view.setUint8(offset, value === 0 ? 0 : 1);
    else if (widthOf(dtype) === 1) view.setUint8(offset, value);
    else if (widthOf(dtype) === 2) view.setUint16(offset, value, true);
    else if (widthOf(dtype) === 4) view.setUint32(offset, value, true);
    else view.setBigUint64(offset, BigInt(value), true);
  };

  // the captured inputs, else 0, 1, 2 … 96 repeatedly
  task.buffers.forEach(([dtype, bytes], i) => {
    const all = new Uint8Array(memory.buffer, places[i], bytes);
    const given = task.inputs?.[i];
    if (given) all.set(given);
    else if (task.inputs === null) {
      const width = widthOf(dtype);
      const view = new DataView(memory.buffer, places[i], bytes);
      const once = Math.min(97 * width, bytes);
      for (let offset = 0; offset < once; offset += width) write(view, offset, dtype, offset / width);
      for (let done = once; done < bytes; done += once) all.copyWithin(done, 0, Math.min(once, bytes - done));
    }
  });
  run(...args);

  let compared = 0;
  let differing = 0;
  let largest = 0;
  for (const { buffer, step, sample } of task.results) {
    const [dtype, bytes] = task.buffers[buffer];
    const width = widthOf(dtype);
    const mine = new DataView(memory.buffer, places[buffer], bytes);
    const theirs = new DataView(sample.buffer, sample.byteOffset, sample.byteLength);
    const isFloat = dtype.includes("float");
    const roundings: Record<string, number> = { float64: 1e-9, float32: 1e-4, float16: 0.01, bfloat16: 0.05 };
    const expected = Array.from({ length: sample.byteLength / width }, (_, i) => read(theirs, i * width, dtype));
    const scale = Math.max(1e-30, ...expected.filter(Number.isFinite).map(Math.abs));
    expected.forEach((right, i) => {
      const found = read(mine, i * step * width, dtype);
      compared += 1;
      if (Object.is(found, right) || found === right) return;
      const error = Math.abs(found - right) / scale;
      if (!isFloat || !(error <= roundings[dtype])) differing += 1;
      if (error > largest) largest = error;
    });
  }

  // engines first compile fast code quickly, then optimize it while it runs
  const began = now();
  let runs = 0;
  do {
    run(...args);
    runs += 1;
  } while (now() - began < warmUpMs);
  const calls = Math.max(1, Math.ceil((SAMPLE_MS * runs) / Math.max(now() - began, 0.01)));
  const times: number[] = [];
  const start = now();
  while (times.length < SAMPLES && (times.length < 3 || now() - start < MOST_MS)) {
    const before = now();
    for (let call = 0; call < calls; call += 1) run(...args);
    times.push(((now() - before) * 1000) / calls);
  }
  return { times_us: times, calls, compared, differing, largest };
}
