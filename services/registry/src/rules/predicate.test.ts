import { describe, expect, it } from "vitest";
import { checkPredicates, type PredicateFacts, Predicates, readPredicate } from "./predicate.ts";

const FACTS: PredicateFacts = {
  from: { id: "pm-1", principal: "P", organization: "acme", tags: ["planner"] },
  to: { id: "analyst-1:7", principal: "A", organization: "acme", tags: ["sql", "eu"], trust: 72.5 },
  justification: "needs deep analysis",
  task: {
    capability: "analyse",
    priority: 5n,
    depth: 1n,
    max_cost_microcents: 9007199254740991n,
    attachments: ["file", "text_snippet"],
  },
};

describe("evaluates to", () => {
  it.each<[string, boolean]>([
    ["true", true],
    ["task.priority >= 5 && task.depth < 3", true],
    ["task.priority > 5 || task.capability == 'analyse'", true],
    ["task.max_cost_microcents <= 9007199254740990", false],
    ["to.trust >= 50", true],
    ["to.trust > 72.5", false],
    ["'file' in task.attachments && size(task.attachments) == 2", true],
    ["'python_object' in task.attachments", false],
    ["from.organization == to.organization", true],
    ["'us' in to.tags ? false : 'eu' in to.tags", true],
    ["to.id.startsWith('analyst-')", true],
    ["justification.contains('analysis') && !justification.endsWith('.')", true],
    ["task.capability in ['analyse', 'plan']", true],
    ["has(task.max_tokens)", false],
    ["!has(task.max_tokens) || task.max_tokens < 1000", true],
    ["double(task.priority) / 2.0 == 2.5", true],
    ["task['priority'] - 1 == 4", true],
  ])("%s is %s", (source, holds) => {
    expect(readPredicate(source)(FACTS)).toEqual({ holds });
  });

  it.each<[string, string]>([
    ["task.max_tokens < 1000", "max_tokens"],
    ["task['nothing'] == 1", "nothing"],
    ["task.priority", "neither true nor false"],
    ["'true'", "neither true nor false"],
    ["task.capability < 5", "overload"],
    ["task.priority / 0 == 1", "divide by zero"],
    ["9223372036854775807 + task.priority > 0", "overflow"],
    ["to.tags[7] == 'x'", "out of bounds"],
  ])("%s is not decided: %s", (source, why) => {
    const verdict = readPredicate(source)(FACTS);
    expect("failure" in verdict ? verdict.failure : verdict).toContain(why);
  });

  it("shortens the reason of a failure", () => {
    const verdict = readPredicate(`task['${"x".repeat(900)}'] == 1`)(FACTS);
    expect("failure" in verdict && verdict.failure.length).toBeLessThanOrEqual(200);
  });
});

describe("refuses", () => {
  it.each<[string, string, string]>([
    ["a malformed expression", "task.priority <", "is not a CEL expression"],
    ["an empty expression", "", "is not a CEL expression"],
    ["an unknown name", "now > 5", "names now"],
    ["an unknown fact", "task.prioritty > 5", "names task.prioritty, which is not a fact"],
    ["trust of the delegator", "from.trust > 5", "names from.trust"],
    ["a fact of a fact", "task.priority.depth > 5", "which is not a fact"],
    ["an unknown fact in has()", "has(task.owner)", "names task.owner"],
    ["a regular expression", "justification.matches('(a+)+$')", "calls matches"],
    ["a search in a computed text", "(justification + justification).contains('b')", "calls contains"],
    ["a search for a computed text", "justification.endsWith('b' + justification)", "calls endsWith"],
    ["a macro over a list", "to.tags.all(a, to.tags.all(b, a == b))", "macro over a list"],
    ["a macro that maps a list", "to.tags.map(t, t + t) == []", "macro over a list"],
    ["a map", "{'a': 1} == {'a': 1}", "creates a map"],
    ["a message", "google.protobuf.Duration{} == task.depth", "creates a map or a message"],
    ["a call of an unknown function", "fetch('http://x')", "calls fetch"],
    ["a time", "timestamp('2020-01-01T00:00:00Z') == task.depth", "calls timestamp"],
    ["a member of every object", "to.constructor == 1", "names to.constructor"],
    ["too many characters", `true ${"|| true ".repeat(150)}`, "more than 1000 characters"],
    ["too many parts", `1${"+1".repeat(200)} == 1`, "more than 200 parts"],
    ["deep nesting", `${"(".repeat(499)}1${")".repeat(499)}`, "nests brackets more than 64 deep"],
    ["nesting just over the limit", `${"(".repeat(65)}1 == 1${")".repeat(65)}`, "more than 64 deep"],
    ["half a surrogate pair", "justification == '\\ud800'", "is not a CEL expression"],
  ])("%s", (_, source, why) => {
    expect(() => readPredicate(source)).toThrow(why);
  });
});

it("permits nesting up to the limit", () => {
  expect(() => readPredicate(`${"(".repeat(64)}1 == 1${")".repeat(64)}`)).not.toThrow();
});

it("has bounded cost for every permitted predicate", () => {
  const justification = "a".repeat(4_000);
  const sources = [
    `justification.contains('b${"a".repeat(900)}')`,
    `${"justification+".repeat(60)}justification == ${"justification+".repeat(4)}justification`,
    Array(30).fill("justification.contains(to.id)").join("||"),
  ];
  for (const source of sources) {
    const facts = { ...FACTS, justification, to: { ...FACTS.to, id: `b${"a".repeat(127)}` } };
    expect(readPredicate(source)(facts)).toEqual({ holds: false });
  }
});

describe("of a manifest", () => {
  const predicates = new Predicates();

  it("reports every invalid predicate", () => {
    const rules = {
      a: { predicate: "true" },
      b: { predicate: "tru" },
      c: {},
      d: { predicate: "x()" },
    };
    expect(checkPredicates(rules, predicates)).toEqual([
      { delegate: "b", problem: "names tru, but the variables are from, to, justification, task" },
      { delegate: "d", problem: "calls x, which is not a permitted function" },
    ]);
  });

  it("compiles no predicate beyond the limit", () => {
    const rules = Object.fromEntries(
      Array.from({ length: 9 }, (_, i) => [`a${i}`, { predicate: `${" ".repeat(995)}tru${i}` }]),
    );
    expect(checkPredicates(rules, predicates)).toEqual([
      { delegate: "a8", problem: "exceeds 8000 characters of predicates in the manifest" },
    ]);
  });

  it("is compiled once, and fails if no longer permitted", () => {
    expect(predicates.read("1 == 1")).toBe(predicates.read("1 == 1"));
    for (let i = 0; i < 1_100; i++) predicates.read(`${i} == 1`);
    expect(predicates.evaluate("1 == 1", FACTS)).toEqual({ holds: true });
    expect(predicates.evaluate("nothing", FACTS)).toHaveProperty("failure");
  });
});
