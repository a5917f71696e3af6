import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Attachment, AttachmentSchema } from "@depute/contracts/cap/v1/attachment_pb";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { carries } from "./held.ts";
import type { Words } from "./message.ts";

const file = (path: string): Attachment =>
  create(AttachmentSchema, {
    kind: { case: "file", value: { location: { case: "path", value: path } } },
  });
const snippet = (text: string): Attachment =>
  create(AttachmentSchema, { kind: { case: "textSnippet", value: { text } } });
const object = (value: JsonValue): Attachment =>
  create(AttachmentSchema, {
    kind: { case: "pythonObject", value: { object: fromJson(ValueSchema, value) } },
  });
const words = (text: string, ...attachments: Attachment[]): Words => ({ text, attachments });

const NOTHING = words("");
const REPORT = "Sales fell by nine percent in the fourth quarter, because ClientA and ClientB left.";
const HELD = words(REPORT, file("reports/q1.md"), object({ insights: [REPORT], total: 7 }));

describe("a message carries a held result", () => {
  test.each<[string, Words]>([
    ["its whole text", words(REPORT)],
    [
      "eight of its words in a row, with other case and punctuation",
      words("I say: SALES fell by NINE percent, in the fourth…"),
    ],
    ["its text in a snippet", words("", snippet(`Note. ${REPORT}`))],
    ["its text inside an object", words("", object({ deep: [{ text: REPORT }] }))],
    ["one of its files", words("look", file("reports/q1.md"))],
    ["one of its objects", words("look", object({ total: 7, insights: [REPORT] }))],
  ])("if it contains %s", (_name, statement) => {
    expect(carries(statement, HELD, NOTHING)).toBe(true);
  });

  test.each<[string, Words, Words]>([
    ["repeated completely", words("it is 42"), words("It is 42!")],
    ["within a longer text", words("clients A and B churned"), words("As I found, clients A and B churned.")],
  ])("also a short one: %s", (_name, heldText, spokenText) => {
    expect(carries(spokenText, heldText, NOTHING)).toBe(true);
  });
});

describe("a message does not carry a held result", () => {
  test.each<[string, Words, Words, Words]>([
    ["with another text", words("I need another day."), HELD, NOTHING],
    ["with seven words in a row", words("Sales fell by nine percent in the"), HELD, NOTHING],
    ["with another file", words("look", file("reports/q2.md")), HELD, NOTHING],
    [
      "with the short text inside a longer one",
      words("seven, I think it is 42 or so"),
      words("it is 42"),
      NOTHING,
    ],
    [
      "with one word that is a member of its object",
      words("ok"),
      words("", object({ status: "ok" })),
      NOTHING,
    ],
    ["with the text of the notice", words(REPORT), words(`${REPORT} Done.`), words(REPORT)],
    [
      "with the file of the notice",
      words("", file("/in.csv")),
      words("", file("/in.csv")),
      words("", file("/in.csv")),
    ],
    ["without a text", words("!"), words("?"), NOTHING],
  ])("%s", (_name, spokenText, heldText, givenText) => {
    expect(carries(spokenText, heldText, givenText)).toBe(false);
  });
});

test("property: eight common words in a row are found in any text, and no common words are not", () => {
  const text = (letter: string) =>
    fc.array(fc.stringMatching(new RegExp(`^${letter}[a-z]{1,8}$`)), { maxLength: 30 });
  fc.assert(
    fc.property(text("b"), text("c"), text("d"), text("e"), (before, after, leftText, right) => {
      const run = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"];
      const heldText = words([...before, ...run, ...after].join(" "));
      expect(carries(words([...leftText, ...run, ...right].join(", ")), heldText, NOTHING)).toBe(true);
      expect(carries(words([...leftText, ...right].join(" ")), heldText, NOTHING)).toBe(false);
    }),
  );
});
