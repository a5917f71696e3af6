import { create } from "@bufbuild/protobuf";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { ListAgentsRequestSchema } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { BatchCreateTasksRequestSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { RevokeKeyAsRootRequestSchema } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { expect, test } from "vitest";
import { timesOutOfRange } from "./contract-rules.ts";

const timestamp = (seconds: bigint, nanos = 0) => create(TimestampSchema, { seconds, nanos });
const duration = (seconds: bigint, nanos = 0) => create(DurationSchema, { seconds, nanos });
const second = (text: string) => BigInt(Date.parse(text)) / 1000n;

test.each([
  ["the earliest time", timestamp(second("0001-01-01T00:00:00Z")), true],
  ["a time before the earliest", timestamp(second("0001-01-01T00:00:00Z") - 1n), false],
  ["the present", timestamp(second("2026-01-01T00:00:00Z"), 999_999_999), true],
  ["the latest time", timestamp(second("9999-12-30T23:59:59Z"), 999_999_999), true],
  ["the last day of the year 9999", timestamp(second("9999-12-31T00:00:00Z")), false],
  ["the end of the year 9999", timestamp(second("9999-12-31T23:59:59Z"), 999_999_999), false],
  ["the year 10000", timestamp(second("9999-12-31T23:59:59Z") + 1n), false],
  ["the largest number", timestamp(9_223_372_036_854_775_807n), false],
  ["the smallest number", timestamp(-9_223_372_036_854_775_808n), false],
  ["a second's worth of nanoseconds", timestamp(0n, 1_000_000_000), false],
  ["nanoseconds below zero", timestamp(0n, -1), false],
])("%s as a time", (_, keepBefore, isInRange) => {
  const message = create(RevokeKeyAsRootRequestSchema, { key: "k", keepBefore });
  const fields = timesOutOfRange(RevokeKeyAsRootRequestSchema, message).map(({ rule }) => rule);
  expect(fields).toEqual(isInRange ? [] : ["timestamp.range"]);
});

test.each([
  ["none", duration(0n), true],
  ["a century", duration(3_155_760_000n), true],
  ["a century back", duration(-3_155_760_000n), true],
  ["more than a century", duration(3_155_760_001n), false],
  ["the largest number", duration(9_223_372_036_854_775_807n), false],
  ["a half of a second back", duration(0n, -500_000_000), true],
  ["parts of two signs", duration(1n, -1), false],
  ["a second's worth of nanoseconds", duration(0n, 1_000_000_000), false],
])("%s as a duration", (_, wait, isInRange) => {
  const message = create(BatchCreateTasksRequestSchema, { requests: [{}, { wait }] });
  const broken = timesOutOfRange(BatchCreateTasksRequestSchema, message);
  expect(broken.map(({ rule }) => rule)).toEqual(isInRange ? [] : ["duration.range"]);
  if (!isInRange)
    expect(broken[0]?.field).toMatchObject([{ name: "requests" }, { index: 1 }, { name: "wait" }]);
});

test("a message without times passes", () => {
  expect(timesOutOfRange(ListAgentsRequestSchema, create(ListAgentsRequestSchema, { pageSize: 1 }))).toEqual(
    [],
  );
});
