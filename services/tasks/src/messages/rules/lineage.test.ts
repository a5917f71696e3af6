import { create } from "@bufbuild/protobuf";
import { LineageTaskSchema, MessageEffect } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { toTimestamp } from "@depute/core";
import { expect, test } from "vitest";
import { lineageMermaid, lineageText } from "./lineage.ts";

const receiveTime = toTimestamp(0);
const root = create(LineageTaskSchema, {
  taskId: "T1",
  engineTaskId: "e1",
  delegatorId: "orchestrator",
  agentId: "pm-1",
  status: TaskStatus.RUNNING,
  messages: [
    {
      messageType: "message",
      senderId: "pm-1",
      recipientId: "user",
      effect: MessageEffect.SAID,
      excerpt: 'one\n"two"\u001b[2J',
      receiveTime,
    },
    {
      messageType: "delegation_notice",
      senderId: "pm-1",
      recipientId: "x",
      effect: MessageEffect.REFUSED,
      errorCode: 403,
      reason: "not\r\nallowed",
      receiveTime,
    },
  ],
  tasks: [
    {
      taskId: "T1.1",
      engineTaskId: "e2",
      delegatorId: 'a"]; click t0 "javascript:alert(1)',
      agentId: "<script>",
      status: TaskStatus.IN_REVIEW,
      overseerId: "qa-1",
    },
    { taskId: "T1.2", engineTaskId: "e3", delegatorId: "pm-1", agentId: "qa-1", reviewedTaskId: "T1.1" },
  ],
});

test("a lineage has one line for each task and message, whatever their texts contain", () => {
  expect(lineageText(root).split("\n")).toEqual([
    "T1 orchestrator -> pm-1 (running)",
    '  1970-01-01T00:00:00.000Z message pm-1 -> user [said] "one "two" [2J"',
    "  1970-01-01T00:00:00.000Z delegation_notice pm-1 -> x [refused 403]: not allowed",
    '  T1.1 a"]; click t0 "javascript:alert(1) -> <script> (in_review, overseer qa-1)',
    "  T1.2 pm-1 -> qa-1 (unspecified, reviews T1.1)",
    "",
  ]);
});

test("a lineage is a Mermaid flowchart in which no text becomes syntax", () => {
  const source = lineageMermaid(root);
  expect(source.split("\n")).toEqual([
    "flowchart TD",
    '  t0["T1<br/>pm-1<br/>running"]',
    '  t1["T1.1<br/>#60;script#62;<br/>in_review"]',
    '  t2["T1.2<br/>qa-1<br/>unspecified"]',
    '  t0 -->|"a#34;#93;#59; click t0 #34;javascript:alert#40;1#41; delegates"| t1',
    '  t0 -->|"pm-1 submits"| t2',
    '  t0 -.->|"pm-1: delegation_notice"| t0r0(("403"))',
    "",
  ]);
});
