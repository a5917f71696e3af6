import { create } from "@bufbuild/protobuf";
import { CapabilityRefSchema, CapabilitySummarySchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { describe, expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { countTokens, type LevelledCapability, nekteJson } from "./tokens.ts";

const ref: LevelledCapability = {
  case: "reference",
  value: create(CapabilityRefSchema, { id: "sum", cat: "math", h: "0123abcd" }),
};
const summary: LevelledCapability = {
  case: "summary",
  value: create(CapabilitySummarySchema, {
    id: "sum",
    h: "0123abcd",
    desc: 'says "hi"',
    cost: { avgMs: 2 },
    agentHint: "use it",
  }),
};
const full: LevelledCapability = {
  case: "full",
  value: capability("sum", { examples: [{ in: { a: 1 }, out: { b: "é" } }] }),
};

describe("nekteJson", () => {
  it.each<[string, LevelledCapability, unknown]>([
    ["level 0", ref, { id: "sum", cat: "math", h: "0123abcd" }],
    [
      "level 1",
      summary,
      { id: "sum", h: "0123abcd", desc: 'says "hi"', cost: { avg_ms: 2 }, agent_hint: "use it" },
    ],
    [
      "level 2",
      full,
      {
        id: "sum",
        cat: "nlp",
        h: "",
        desc: "",
        cost: { avg_ms: 200, avg_tokens: 50 },
        input: { type: "object" },
        output: { type: "object" },
        examples: [{ in: { a: 1 }, out: { b: "é" } }],
      },
    ],
  ])("%s equals NEKTE's JSON", (_, each, expected) => {
    expect(JSON.parse(nekteJson(each))).toEqual(expected);
    expect(nekteJson(each)).toBe(JSON.stringify(JSON.parse(nekteJson(each))));
  });
});

describe("countTokens", () => {
  it.each<[string, LevelledCapability[]]>([
    ["nothing", []],
    ["one", [ref]],
    ["several", [ref, summary, full]],
  ])("%s costs a quarter of the characters of the list", (_, list) => {
    const text = JSON.stringify(list.map((each) => JSON.parse(nekteJson(each))));
    expect(countTokens(list)).toBe(Math.ceil(text.length / 4));
  });
});
