import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { StreamResponseSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type A2aEvent, type A2aStep, readA2aEvent } from "./a2a-event.ts";
import { PeerFault } from "./refusal.ts";

const element = (json: JsonValue) => fromJson(StreamResponseSchema, json);

/** Reads a stream and returns its last step. */
function readAll(...elements: JsonValue[]): A2aStep {
  let step: A2aStep | undefined;
  for (const json of elements) step = readA2aEvent(element(json), step?.task);
  if (step === undefined) throw new Error("the stream is empty");
  return step;
}

const says = (...parts: JsonValue[]) => ({ messageId: "m", role: "ROLE_AGENT", parts });
const task = (state: string, more: object = {}) => ({ task: { id: "t1", status: { state }, ...more } });
const status = (state: string, message?: JsonValue, taskId = "t1") => ({
  statusUpdate: { taskId, contextId: "c", status: { state, ...(message ? { message } : {}) } },
});
const piece = (artifactId: string, text: string, more: object = {}, taskId = "t1") => ({
  artifactUpdate: { taskId, contextId: "c", artifact: { artifactId, parts: [{ text }] }, ...more },
});
const SUBMITTED = task("TASK_STATE_SUBMITTED");
const COMPLETED = status("TASK_STATE_COMPLETED");

describe("a status of an A2A task", () => {
  test.each<[string, JsonValue | undefined, A2aEvent]>([
    ["TASK_STATE_SUBMITTED", undefined, { kind: "moved" }],
    ["TASK_STATE_UNSPECIFIED", undefined, { kind: "moved" }],
    ["TASK_STATE_WORKING", undefined, { kind: "moved" }],
    ["TASK_STATE_WORKING", says({ text: "half" }), { kind: "progress", message: "half" }],
    ["TASK_STATE_COMPLETED", undefined, { kind: "complete", output: null }],
    ["TASK_STATE_COMPLETED", says({ text: "yes" }), { kind: "complete", output: "yes" }],
    ["TASK_STATE_FAILED", says({ text: "no lexicon" }), { kind: "failed", message: "no lexicon" }],
    ["TASK_STATE_REJECTED", says({ text: "not mine" }), { kind: "rejected", message: "not mine" }],
    ["TASK_STATE_CANCELED", undefined, { kind: "cancelled", message: "" }],
    [
      "TASK_STATE_INPUT_REQUIRED",
      says({ text: "which" }, { text: "file?" }),
      { kind: "asks", needs: "input", question: "which\nfile?" },
    ],
    [
      "TASK_STATE_AUTH_REQUIRED",
      says({ text: "sign in" }),
      { kind: "asks", needs: "authorization", question: "sign in" },
    ],
  ])("%s with %j", (state, message, event) => {
    expect(readAll(SUBMITTED, status(state, message)).event).toEqual(event);
    expect(readAll({ task: { id: "t1", status: { state, ...(message ? { message } : {}) } } }).event).toEqual(
      event,
    );
  });

  test("has bounded text", () => {
    const long = says({ text: "x".repeat(5000) });
    expect(readAll(SUBMITTED, status("TASK_STATE_FAILED", long)).event).toMatchObject({
      message: "x".repeat(2000),
    });
    expect(readAll(SUBMITTED, status("TASK_STATE_WORKING", long)).event).toMatchObject({
      message: "x".repeat(1000),
    });
  });
});

describe("the result of an A2A task", () => {
  test.each<[string, JsonValue[], JsonValue]>([
    ["is the text of its artifact", [{ text: "a" }], "a"],
    ["joins the texts of its artifact", [{ text: "a" }, { text: "b" }], "a\nb"],
    ["is the value of a data part", [{ data: { n: 1 } }], { n: 1 }],
    ["is a data part that is null", [{ data: null }], null],
    [
      "keeps every other content in its A2A form",
      [{ text: "a" }, { url: "https://files.example/a", filename: "a" }],
      { parts: [{ text: "a" }, { url: "https://files.example/a", filename: "a" }] },
    ],
  ])("%s", (_, parts, output) => {
    const artifacts = [{ artifactId: "r", parts }];
    expect(readAll(task("TASK_STATE_COMPLETED", { artifacts })).event).toEqual({ kind: "complete", output });
  });

  test("joins the chunks of an artifact, and a chunk without append replaces it", () => {
    const pieces = [piece("r", "old"), piece("r", "a"), piece("r", "b", { append: true, lastChunk: true })];
    expect(readAll(SUBMITTED, ...pieces, COMPLETED).event).toEqual({ kind: "complete", output: "a\nb" });
  });

  test("keeps several artifacts in the form of A2A", () => {
    const { event } = readAll(SUBMITTED, piece("a", "1"), piece("b", "2"), COMPLETED);
    const artifacts = [
      { artifactId: "a", parts: [{ text: "1" }] },
      { artifactId: "b", parts: [{ text: "2" }] },
    ];
    expect(event).toEqual({ kind: "complete", output: { artifacts } });
  });

  test("contains the artifacts of the snapshot after a reconnect once", () => {
    const snapshot = task("TASK_STATE_WORKING", { artifacts: [{ artifactId: "r", parts: [{ text: "a" }] }] });
    const { event } = readAll(
      SUBMITTED,
      piece("r", "a"),
      snapshot,
      piece("r", "b", { append: true }),
      COMPLETED,
    );
    expect(event).toEqual({ kind: "complete", output: "a\nb" });
  });

  test("is a direct reply if the agent creates no task", () => {
    const step = readAll({ message: says({ text: "hello" }) });
    expect(step).toEqual({ task: undefined, event: { kind: "complete", output: "hello" } });
  });
});

describe("an A2A agent's stream is refused", () => {
  test.each<[string, JsonValue[]]>([
    ["with another task's status", [SUBMITTED, status("TASK_STATE_COMPLETED", undefined, "t2")]],
    ["with another task's artifact", [SUBMITTED, piece("r", "a", {}, "t2")]],
    ["with another task", [SUBMITTED, { task: { id: "t2", status: { state: "TASK_STATE_COMPLETED" } } }]],
    ["with a status before the task", [COMPLETED]],
    ["with a direct reply after the task", [SUBMITTED, { message: says({ text: "a" }) }]],
    ["with a task without an id", [{ task: { status: { state: "TASK_STATE_WORKING" } } }]],
    ["with an id that is too long", [{ task: { id: "x".repeat(129), status: {} } }]],
    ["with a task without a status", [{ task: { id: "t1" } }]],
    ["with an artifact without an id", [SUBMITTED, piece("", "a")]],
    ["with an empty element", [{}]],
  ])("%s", (_, elements) => {
    expect(() => readAll(...elements)).toThrow(
      expect.objectContaining({ name: "PeerFault", reason: "ENDPOINT_MALFORMED" }),
    );
  });

  test.each<[string, JsonValue[]]>([
    ["artifacts", Array.from({ length: 65 }, (_, number) => piece(`r${number}`, "a"))],
    ["parts", Array.from({ length: 1025 }, () => piece("r", "a", { append: true }))],
  ])("with too many %s", (_, pieces) => {
    expect(readAll(SUBMITTED, ...pieces.slice(0, -1)).event).toEqual({ kind: "moved" });
    expect(() => readAll(SUBMITTED, ...pieces)).toThrow(
      expect.objectContaining({ name: "PeerFault", reason: "LIMIT_EXCEEDED" }),
    );
  });

  test("or read for every sequence of elements", () => {
    const ids = fc.constantFrom("t1", "t2", "");
    const elements = fc.oneof(
      ids.map((id) => status("TASK_STATE_WORKING", undefined, id)),
      ids.map((id) => piece("r", "a", { append: true }, id)),
      fc.constantFrom<JsonValue>(SUBMITTED, COMPLETED, {}, { message: says({ text: "a" }) }),
    );
    fc.assert(
      fc.property(fc.array(elements, { minLength: 1, maxLength: 8 }), (stream) => {
        try {
          expect(["moved", "complete"]).toContain(readAll(...stream).event.kind);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(PeerFault);
        }
      }),
    );
  });
});
