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
    ["all of its words", words(REPORT)],
    [
      "eight of them in a row, in other case and with other marks",
      words("I say: SALES fell by NINE percent, in the fourth…"),
    ],
    ["its words in a snippet", words("", snippet(`Note. ${REPORT}`))],
    ["its words inside an object", words("", object({ deep: [{ text: REPORT }] }))],
    ["a file of it", words("look", file("reports/q1.md"))],
    ["an object of it", words("look", object({ total: 7, insights: [REPORT] }))],
  ])("by %s", (_name, statement) => {
    expect(carries(statement, HELD, NOTHING)).toBe(true);
  });

  test.each<[string, Words, Words]>([
    ["a short one, in whole", words("it is 42"), words("It is 42!")],
    [
      "a middling one, within more",
      words("clients A and B churned"),
      words("As I found, clients A and B churned."),
    ],
  ])("of few words: %s", (_name, heldText, spokenText) => {
    expect(carries(spokenText, heldText, NOTHING)).toBe(true);
  });
});

describe("a message carries none", () => {
  test.each<[string, Words, Words, Words]>([
    ["with words of its own", words("I need another day."), HELD, NOTHING],
    ["with seven words in a row", words("Sales fell by nine percent in the"), HELD, NOTHING],
    ["with another file", words("look", file("reports/q2.md")), HELD, NOTHING],
    ["with the short words of a part", words("seven, I think it is 42 or so"), words("it is 42"), NOTHING],
    ["with a member of an object that is a word", words("ok"), words("", object({ status: "ok" })), NOTHING],
    ["with what the notice said", words(REPORT), words(`${REPORT} Done.`), words(REPORT)],
    [
      "with what the notice brought",
      words("", file("/in.csv")),
      words("", file("/in.csv")),
      words("", file("/in.csv")),
    ],
    ["without a word", words("!"), words("?"), NOTHING],
  ])("%s", (_name, spokenText, heldText, givenText) => {
    expect(carries(spokenText, heldText, givenText)).toBe(false);
  });
});

test("whatever stands around a run of eight words, it is found; without a common word none is", () => {
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
