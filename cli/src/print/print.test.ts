import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { ageOf, cellsOf } from "./cells.ts";
import { jsonText, yamlText } from "./documents.ts";
import { escapeControls, oneLine } from "./safe-text.ts";
import { layTable } from "./table.ts";
import { cut, widthOf } from "./width.ts";

const plain = { paint: (text: string) => text, header: true };
const row = (...texts: string[]) => texts.map((text) => ({ text }));

/** Characters that control a terminal, or that change the order of the text around them. */
const OBEYED = [
  "\u001b",
  "\u0007",
  "\u0000",
  "\r",
  "\u007f",
  "\u009b",
  "\u202e",
  "\u2066",
  "\u2028",
  "\ufeff",
];

describe("texts of other parties", () => {
  test.each([
    ["\u001b[2Jgone", "\\u001b[2Jgone"],
    ["a\rb", "a\\u000db"],
    ["\u009b31m", "\\u009b31m"],
    ["\u202egnp.exe", "\\u202egnp.exe"],
    ["\udc00 half", "\\udc00 half"],
    ["\u{e0041}tag", "\\udb40\\udc41tag"],
    ["two\nlines\t", "two\nlines\t"],
    ["plain, ä, 漢, 👍", "plain, ä, 漢, 👍"],
  ])("%j is printed as %j", (text, printed) => {
    expect(escapeControls(text)).toBe(printed);
  });

  test("fit one line of a cell", () => {
    expect(oneLine("a\nb\tc\r\u001b")).toBe("a\\nb\\tc\\r\\u001b");
  });

  test("are complete in JSON and YAML, and escaped on a terminal", async () => {
    const text = fc.array(fc.oneof(fc.constantFrom(...OBEYED), fc.string()), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(text, async (parts) => {
        const value = { [`k${parts.join("")}`]: parts.join("-") };
        for (const printed of [jsonText(value, 2), await yamlText(value)]) {
          for (const character of OBEYED) expect(printed).not.toContain(character);
        }
        expect(JSON.parse(jsonText(value, 0))).toEqual(value);
        expect(parse(await yamlText(value))).toEqual(value);
      }),
    );
  });
});

describe("width", () => {
  test.each([
    ["abc", 3],
    ["漢字", 4],
    ["e\u0301", 1],
    ["👍", 2],
    ["👩‍👩‍👧", 2],
  ])("%j takes %i columns", (text, columns) => {
    expect(widthOf(text)).toBe(columns);
  });

  test("a cut text fits, whatever its content", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 40 }), (text, columns) => {
        expect(widthOf(cut(text, columns))).toBeLessThanOrEqual(columns);
      }),
    );
  });
});

describe("a table", () => {
  const headings = ["ID", "STATUS", "DESCRIPTION"];
  const rows = [row("01a2", "running", "a long description of the work"), row("01a3", "done", "")];

  test("is complete in a pipe", () => {
    expect(layTable(headings, rows, plain).lines).toEqual([
      "ID    STATUS   DESCRIPTION",
      "01a2  running  a long description of the work",
      "01a3  done",
    ]);
  });

  test("cuts its widest column on a narrow terminal", () => {
    expect(layTable(headings, rows, { ...plain, columns: 26 }).lines).toEqual([
      "ID    STATUS   DESCRIPTION",
      "01a2  running  a long des…",
      "01a3  done",
    ]);
  });

  test("becomes lines of one value if no column can be narrower", () => {
    expect(layTable(headings, rows, { ...plain, columns: 14 }).lines).toEqual([
      "ID: 01a2",
      "STATUS: runni…",
      "DESCRIPTION: …",
      "",
      "ID: 01a3",
      "STATUS: done",
    ]);
  });

  test("never exceeds the width of the terminal", () => {
    const cell = fc.string({ unit: "grapheme", maxLength: 60 }).map((text) => oneLine(text));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 6, max: 120 }),
        (cells, columns) => {
          const { lines } = layTable(
            headings,
            cells.map((texts) => row(...texts)),
            { ...plain, columns },
          );
          for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns);
        },
      ),
    );
  });
});

test.each([
  [999, "0s"],
  [119_000, "119s"],
  [120_000, "2m"],
  [7_200_000, "2h"],
  [172_800_000, "2d"],
  [-5, "0s"],
])("an age of %i ms is %s", (ms, shownAge) => {
  expect(ageOf(ms)).toBe(shownAge);
});

test("a cell shows a constant without its prefix, a missing number as 0, and a hostile name escaped", () => {
  const item = { status: "TASK_STATUS_IN_REVIEW", name: "\u001b]0;x\u0007", cost: "150000000" };
  const columns = [
    ["STATUS", "status", "enum:TASK_STATUS_"],
    ["NAME", "name"],
    ["COUNT", "count", "number"],
    ["COST", "cost", "usd"],
    ["OWN", "toString"],
  ] as const;
  expect(cellsOf(item, columns, 0).map(({ text }) => text)).toEqual([
    "in-review",
    "\\u001b]0;x\\u0007",
    "0",
    "$1.50",
    "",
  ]);
});
