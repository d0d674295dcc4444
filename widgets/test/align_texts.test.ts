import assert from "node:assert/strict";
import { test } from "node:test";
import { type LanguageLine, alignTexts } from "../src/language_comparison/align_texts";

const text = (...rows: (number | null)[]): LanguageLine[] => rows.map((row) => ["", row, row === null ? [] : [row]]);

// the same case as in tests/explore/test_language_comparison.py, for the other implementation
test("alignment moves no line, and says where counterparts are", () => {
  const rows = alignTexts([text(null, 1, 2, 2, 3, 2), text(1, 4, 2, 3), text(2, 1)]);
  assert.deepEqual(
    rows.map(({ origin, spans, elsewhere }) => [origin, spans, elsewhere]),
    [
      [
        null,
        [
          [0, 1],
          [0, 0],
          [0, 0],
        ],
        [false, false, false],
      ],
      [
        1,
        [
          [1, 2],
          [0, 1],
          [0, 0],
        ],
        [false, false, true],
      ],
      [
        4,
        [
          [0, 0],
          [1, 2],
          [0, 0],
        ],
        [false, false, false],
      ],
      [
        2,
        [
          [2, 4],
          [2, 3],
          [0, 1],
        ],
        [false, false, false],
      ],
      [
        3,
        [
          [4, 5],
          [3, 4],
          [0, 0],
        ],
        [false, false, false],
      ],
      [
        2,
        [
          [5, 6],
          [0, 0],
          [0, 0],
        ],
        [false, true, true],
      ],
      [
        1,
        [
          [0, 0],
          [0, 0],
          [1, 2],
        ],
        [true, true, false],
      ],
    ],
  );
});
