import { create } from "@bufbuild/protobuf";
import {
  DeregisterAgentRequestSchema,
  ListAgentsRequestSchema,
  RegisterAgentRequestSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { PurgeOrganizationRequestSchema } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import {
  CreateTaskRequestSchema,
  CreateTaskResponseSchema,
  ProvideInputRequestSchema,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { expect, it } from "vitest";
import { resourceOf } from "./resource-of.ts";

it("is the first id of the request, and never the id of a repeated call", () => {
  const message = create(ProvideInputRequestSchema, { requestId: "r-1", taskId: "t-1" });
  expect(resourceOf({ desc: ProvideInputRequestSchema, message })).toBe("tasks/t-1");
});

it("is the record that the call created, if the request names none", () => {
  const message = create(CreateTaskRequestSchema, { requestId: "r-1" });
  const answer = create(CreateTaskResponseSchema, { task: { id: "t-1" } });
  const output = { desc: CreateTaskResponseSchema, message: answer };
  expect(resourceOf({ desc: CreateTaskRequestSchema, message }, output)).toBe("tasks/t-1");
});

it("is the record of the request when the call was refused", () => {
  const message = create(RegisterAgentRequestSchema, { requestId: "r-1", agent: { id: "echo" } });
  expect(resourceOf({ desc: RegisterAgentRequestSchema, message })).toBe("agents/echo");
});

it("is the organization, if the call is about no other record", () => {
  const message = create(PurgeOrganizationRequestSchema, { requestId: "r-1", organization: "acme" });
  expect(resourceOf({ desc: PurgeOrganizationRequestSchema, message })).toBe("organizations/acme");
});

it("is empty for a call about no single record, and bounded", () => {
  expect(resourceOf({ desc: ListAgentsRequestSchema, message: create(ListAgentsRequestSchema) })).toBe("");
  const message = create(DeregisterAgentRequestSchema, { agentId: "x".repeat(1000) });
  expect(resourceOf({ desc: DeregisterAgentRequestSchema, message })).toHaveLength(256);
});
