import { create } from "@bufbuild/protobuf";
import { type Task, TaskSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { expect, test } from "vitest";
import { causesOf } from "./lineage.ts";

const ID = "019526b1-0000-7000-8000-000000000001";
const OTHER = "019526b1-0000-7000-8000-000000000002";
const NONE = { executionRequestId: "", sessionId: "", capTaskId: "", isConversation: false };

test.each<[string, Partial<Task>, object]>([
  ["its own correlation id", { correlationId: ID }, {}],
  ["a correlation id in words", { correlationId: "order 7" }, {}],
  ["a correlation id in the form of a session's id", { correlationId: OTHER }, { sessionId: OTHER }],
  ["an A2A conversation", { correlationId: OTHER, isConversation: true }, { isConversation: true }],
  ["an execution", { correlationId: OTHER, executionRequestId: "r1" }, { executionRequestId: "r1" }],
  ["a dotted external id", { externalId: "T1.1" }, { capTaskId: "T1.1" }],
  ["an external id with spaces", { externalId: "T1 a" }, {}],
])("a task with %s names its possible causes", (_, fields, causes) => {
  expect(causesOf(create(TaskSchema, { id: ID, ...(fields as object) }))).toEqual({ ...NONE, ...causes });
});
