import { create } from "@bufbuild/protobuf";
import {
  ContextRequestSchema,
  DelegateRequestSchema,
  DiscoverRequestSchema,
  InvokeRequestSchema,
  VerifyRequestSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { assertValid } from "@depute/service";
import { expect, test } from "vitest";
import { prepareRequest } from "./proto3.ts";

const data = new TextEncoder().encode("1");

test.each([
  [
    "a filter of zeros",
    DiscoverRequestSchema,
    { level: 0, filter: { id: "", topK: 0 } },
    { level: 0, filter: {} },
  ],
  [
    "a budget of zeros",
    InvokeRequestSchema,
    { cap: "a", h: "", input: data, budget: {} },
    { cap: "a", input: data },
  ],
  [
    "a budget without tokens",
    InvokeRequestSchema,
    { cap: "a", input: data, budget: { detailLevel: "full" } },
    { cap: "a", input: data, budget: { maxTokens: 4096, detailLevel: "full" } },
  ],
  [
    "a budget without a level",
    InvokeRequestSchema,
    { cap: "a", input: data, budget: { maxTokens: 7 } },
    { cap: "a", input: data, budget: { maxTokens: 7, detailLevel: "compact" } },
  ],
  [
    "a context without permissions",
    DelegateRequestSchema,
    { task: { id: "t", desc: "", timeoutMs: 1 }, context: { data, ttlS: 1, compression: "" } },
    { task: { id: "t", desc: "", timeoutMs: 1 }, context: { data, ttlS: 1, permissions: {} } },
  ],
  [
    "a context named by its id",
    ContextRequestSchema,
    { action: "request", envelope: { id: "c" } },
    {
      action: "request",
      envelope: { id: "c", data: new TextEncoder().encode("null"), permissions: {}, ttlS: 1 },
    },
  ],
  [
    "a check that is not requested",
    VerifyRequestSchema,
    { taskId: "t", checks: ["hash"], resultHash: "", verificationType: "" },
    { taskId: "t", checks: ["hash"] },
  ],
])("%s", (_, schema, sent, expectedValue) => {
  const prepared = prepareRequest(schema, create(schema as typeof ContextRequestSchema, sent as never));
  expect(prepared).toEqual(create(schema as typeof ContextRequestSchema, expectedValue as never));
  assertValid(schema, prepared);
});

test("refuses a shared context with a duration of zero", () => {
  const request = create(ContextRequestSchema, { action: "share", envelope: { data } });
  const prepared = prepareRequest(ContextRequestSchema, request);
  expect(() => assertValid(ContextRequestSchema, prepared)).toThrow("ttl_s");
});
