import { create } from "@bufbuild/protobuf";
import {
  CancelTaskRequestSchema,
  CreateTaskRequestSchema,
  TaskDraftSchema,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { describe, expect, test } from "vitest";
import { isSureToKeepRules, readExpression } from "./quick-rules.ts";

const draft = (agentId: string, capabilityId: string) => create(TaskDraftSchema, { agentId, capabilityId });

test.each([
  ["this.agent_id != ''", "a", "", true],
  ["this.agent_id != ''", "", "c", false],
  ["this.agent_id == '' || this.capability_id == ''", "a", "c", false],
  ["this.agent_id == '' || this.capability_id == ''", "a", "", true],
  ["(this.agent_id != '') != (this.capability_id != '')", "a", "", true],
  ["(this.agent_id != '') != (this.capability_id != '')", "a", "c", false],
  ["(this.agent_id != '') != (this.capability_id != '')", "", "", false],
])("%s of '%s' and '%s' is %s", (expression, agentId, capabilityId, expected) => {
  expect(readExpression(TaskDraftSchema, expression)?.(draft(agentId, capabilityId))).toBe(expected);
});

test.each([
  ["of an unknown field", "this.nobody != ''"],
  ["of a number", "this.priority != ''"],
  ["of a message", "this.input != ''"],
  ["of a list", "this.context_ids != ''"],
  ["with another operator", "this.agent_id != '' && this.capability_id != ''"],
  ["within a longer expression", "!(this.agent_id != '')"],
  ["of another kind", "this.agent_id.size() > 0"],
  ["that is empty", ""],
])("an expression %s needs protovalidate", (_name, expression) => {
  expect(readExpression(TaskDraftSchema, expression)).toBeUndefined();
});

describe("a message under such an expression", () => {
  test.each([
    ["passes", { agentId: "worker" }, true],
    ["needs protovalidate", {}, false],
  ])("%s", (_name, init, expected) => {
    const request = create(CreateTaskRequestSchema, { requestId: "r", draft: init });
    expect(isSureToKeepRules(CreateTaskRequestSchema, request)).toBe(expected);
  });

  test("is checked by the presence of two fields", () => {
    const sure = (init: { taskId?: string; externalId?: string }) =>
      isSureToKeepRules(CancelTaskRequestSchema, create(CancelTaskRequestSchema, init));
    expect([
      sure({ taskId: "t" }),
      sure({ externalId: "e" }),
      sure({ taskId: "t", externalId: "e" }),
    ]).toEqual([true, true, false]);
  });
});
