import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
}, 60_000);
afterAll(() => platform.stop());

const METHOD = "depute.tasks.v1.TaskService/BatchCreateTasks";
/** A request to create fifty tasks, none of which has a request id. */
const bad = { requests: Array.from({ length: 50 }, () => ({ draft: { agentId: "a" } })) };
const SUMMARY = "(and 30 more violations)";

describe("a batch with fifty bad items", () => {
  test("is read by @grpc/grpc-js, with the first violations and the number of the others", async () => {
    const thrown = await platform.clients.tasks.batchCreateTasks(bad).catch((error: unknown) => error);
    const error = ConnectError.from(thrown);
    expect(error.rawMessage).toContain(SUMMARY);
    const fields = error.findDetails(BadRequestSchema).flatMap((detail) => detail.fieldViolations);
    expect(fields.map(({ field }) => field)).toEqual(
      Array.from({ length: 20 }, (_, index) => `requests[${index}].request_id`),
    );
    expect(error.findDetails(ErrorInfoSchema)[0]).toMatchObject({
      reason: "INVALID_REQUEST",
      metadata: { more_violations: "30" },
    });
  });

  test.each(["grpc", "grpcweb", "connect"])("is read by `buf curl` over %s", async (protocol) => {
    const buf = new URL("../../node_modules/.bin/buf", import.meta.url).pathname;
    const args = ["curl", "--http2-prior-knowledge", "--protocol", protocol, "-d", JSON.stringify(bad)];
    const run = promisify(execFile)(buf, [...args, `${platform.url}/${METHOD}`]);
    const { stderr } = (await run.catch((error: unknown) => error)) as { stderr: string };
    expect(stderr).toContain("invalid_argument");
    expect(stderr).toContain(SUMMARY);
  });

  test("has the same limits over Connect by plain fetch", async () => {
    const response = await fetch(`${platform.url}/${METHOD}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(bad),
    });
    const text = await response.text();
    expect([response.status, JSON.parse(text).code]).toEqual([400, "invalid_argument"]);
    expect(text.length).toBeLessThan(16_384);
  });
});
