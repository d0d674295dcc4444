import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { sha1, addDigests } from "../src/digests";
import type { Node } from "../src/model";

test("sha1 of texts of every length around a block, and of other letters", () => {
  const texts = [
    "",
    "×, ≤ and 😀",
    ...Array.from({ length: 140 }, (_, length) => "abcdefghij".repeat(14).slice(0, length)),
  ];
  for (const text of texts) assert.equal(sha1(text), createHash("sha1").update(text, "utf8").digest("hex"), text);
});

test("digests that a trace lacks are made as Python makes them, those that it has stay", () => {
  const rest = {
    kind: "uop",
    shape: null,
    user: null,
    label: "",
    group: "alu",
    calls: [],
    name: "",
    scope: null,
    backward: false,
  };
  const nodes: Node[] = [
    { ...rest, id: 0, op: "DEFINE_GLOBAL", src: [], dtype: "float32*", arg: "0", digest: "", detail: "float32[8]" },
    { ...rest, id: 1, op: "CONST", src: [], dtype: "float32", arg: "1.0", digest: "", detail: "1.0" },
    { ...rest, id: 2, op: "ADD", src: [1, 3 - 2], dtype: "float32×4", arg: "", digest: "", detail: "x" },
    { ...rest, kind: "lazybuffer", id: 3, op: "ADD", src: [], dtype: "float32", arg: "", digest: "kept", detail: "" },
  ];
  // tests/explore/test_digests.py has the same nodes
  assert.deepEqual(
    addDigests(nodes).map(({ digest }) => digest),
    ["ab4879e68016", "fa5e50100142", "a4f5f162a210", "kept"],
  );
});
