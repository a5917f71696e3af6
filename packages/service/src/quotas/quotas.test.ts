import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { KeyService } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { DeputeError, ErrorReason, ManualClock } from "@depute/core";
import { expect, test } from "vitest";
import { classOf } from "./call-class.ts";
import { type QuotaLimits, Quotas } from "./quotas.ts";

function quotas(limits: Partial<QuotaLimits> = {}) {
  const clock = new ManualClock();
  const perSecond = { read: 3, write: 2, stream: 100, mint: 1, verification: 2 };
  const amounts = { bytes: 1000, verification_cpu_ms: 100 };
  const places = { openStreams: 2, openTasks: 3 };
  const all = { perSecond, amounts, ...places, organizationFactor: 2, replicas: 1, ...limits };
  const refused: string[] = [];
  const own = new Quotas(all, { clock, onRefusal: (limit) => refused.push(limit) });
  return { clock, quotas: own, refused };
}

const refusal = (limit: string) =>
  expect.objectContaining({
    reason: ErrorReason.LIMIT_EXCEEDED,
    metadata: expect.objectContaining({ limit, retry_after_ms: expect.stringMatching(/^\d+$/) }),
  });

test("a principal is refused above its rate, and served again after the stated time", () => {
  const { clock, quotas: own } = quotas();
  for (let i = 0; i < 2; i++) own.charge("write", "ada", "");
  expect(() => own.charge("write", "ada", "")).toThrow(refusal("principal_write_calls_per_second"));
  clock.advance(500);
  own.charge("write", "ada", "");
});

test("classes and principals do not count for one another", () => {
  const { quotas: own } = quotas();
  own.charge("mint", "ada", "");
  own.charge("verification", "ada", "");
  own.charge("mint", "bob", "");
  expect(() => own.charge("mint", "ada", "")).toThrow(refusal("principal_mint_calls_per_second"));
});

test("the principals of an organization share its quota", () => {
  const { quotas: own } = quotas();
  for (const principal of ["a", "a", "b", "b"]) own.charge("write", principal, "acme");
  expect(() => own.charge("write", "c", "acme")).toThrow(refusal("organization_write_calls_per_second"));
  own.charge("write", "c", "globex");
});

test("a call that the organization's quota refuses does not count for the principal", () => {
  const { clock, quotas: own } = quotas();
  for (const principal of ["a", "a", "b", "b"]) own.charge("write", principal, "acme");
  for (let i = 0; i < 5; i++) expect(() => own.charge("write", "c", "acme")).toThrow();
  for (let i = 0; i < 2; i++) own.charge("write", "c", "");
  clock.advance(250);
  expect(() => own.charge("write", "c", "acme")).toThrow(refusal("principal_write_calls_per_second"));
});

test("open streams count until their end, and each end counts once", () => {
  const { quotas: own } = quotas();
  const first = own.charge("stream", "ada", "");
  own.charge("stream", "ada", "");
  expect(() => own.charge("stream", "ada", "")).toThrow(refusal("principal_open_streams"));
  first.end();
  first.end();
  own.charge("stream", "ada", "");
  expect(() => own.charge("stream", "ada", "")).toThrow(refusal("principal_open_streams"));
});

test("each replica grants its share", () => {
  const { quotas: own } = quotas({ replicas: 2 });
  own.charge("write", "ada", "");
  expect(() => own.charge("write", "ada", "")).toThrow(refusal("principal_write_calls_per_second"));
});

test("a flood of principals does not reset the open streams of another", () => {
  const { quotas: own } = quotas();
  for (let i = 0; i < 2; i++) own.charge("stream", "ada", "");
  for (let i = 0; i < 25_000; i++) own.charge("read", `sybil ${i}`, "");
  expect(() => own.charge("stream", "ada", "")).toThrow(refusal("principal_open_streams"));
});

test.each([
  ["bytes", 1000, "bytes_per_second"],
  ["verification_cpu_ms", 100, "verification_cpu_ms_per_second"],
] as const)("a caller can exceed its quota of %s by one use, and then waits", (amount, max, limit) => {
  const { clock, quotas: own } = quotas();
  own.use(amount, max - 1, "ada", "");
  own.assertRoom(amount, "ada", "");
  own.use(amount, max + 1, "ada", "");
  expect(() => own.assertRoom(amount, "ada", "")).toThrow(refusal(`principal_${limit}`));
  expect(own.waitOf(amount, "ada", "")).toBe(1_001);
  own.assertRoom(amount, "bob", "");
  clock.advance(1_001);
  own.assertRoom(amount, "ada", "");
});

test.each(["bytes", "verification_cpu_ms"] as const)(
  "the principals of an organization share its quota of %s, and another organization has its own",
  (amount) => {
    const { quotas: own } = quotas();
    for (const principal of ["a", "b", "c"]) own.use(amount, 999, principal, "acme");
    for (const principal of ["a", "b", "c"]) own.use(amount, 1, principal, "acme");
    expect(() => own.assertRoom(amount, "d", "acme")).toThrow(/the organization has used its quota/);
    own.assertRoom(amount, "d", "globex");
    own.assertRoom(amount, "d", "");
  },
);

test("used bytes refuse calls of every class, and used processor time refuses calls that verify", () => {
  const { quotas: own } = quotas();
  own.use("verification_cpu_ms", 500, "ada", "");
  for (const kind of ["mint", "verification"] as const)
    expect(() => own.charge(kind, "ada", "")).toThrow(refusal("principal_verification_cpu_ms_per_second"));
  own.charge("read", "ada", "");
  own.use("bytes", 5_000, "ada", "");
  for (const kind of ["read", "write", "stream"] as const)
    expect(() => own.charge(kind, "ada", "")).toThrow(refusal("principal_bytes_per_second"));
});

test("each replica grants its share of amounts, and all replicas share the places of open tasks", () => {
  const { quotas: own } = quotas({ replicas: 2 });
  own.use("bytes", 500, "ada", "");
  expect(() => own.assertRoom("bytes", "ada", "")).toThrow(refusal("principal_bytes_per_second"));
  expect([own.maxOpenTasks("principal"), own.maxOpenTasks("organization")]).toEqual([3, 6]);
});

test("an amount is scarce when any caller may have used its quota", () => {
  const { clock, quotas: own } = quotas();
  expect(own.isScarce("verification_cpu_ms")).toBe(false);
  own.use("verification_cpu_ms", 200, "ada", "");
  own.use("verification_cpu_ms", 1, "bob", "");
  expect(own.isScarce("verification_cpu_ms")).toBe(true);
  expect(own.isScarce("bytes")).toBe(false);
  clock.advance(1_001);
  expect(own.isScarce("verification_cpu_ms")).toBe(false);
});

test("refusals are counted by the name of the quota, and other errors are not", () => {
  const { quotas: own, refused } = quotas();
  own.noteRefusal(own.tooManyTasks("organization"));
  own.noteRefusal(
    new DeputeError(ErrorReason.LIMIT_EXCEEDED, "x", { metadata: { limit: "tree.depth", max: "8" } }),
  );
  own.noteRefusal(new Error("x"));
  expect(refused).toEqual(["organization_open_tasks"]);
});

test.each([
  [TaskService.method.getTask, "read"],
  [TaskService.method.createTask, "write"],
  [TaskService.method.watchTask, "stream"],
  [TokenService.method.mintToken, "mint"],
  [KeyService.method.mintWithKey, "mint"],
  [TokenService.method.verifyToken, "verification"],
  [VerificationService.method.checkOutput, "verification"],
] as const)("%s has its class", (method, kind) => {
  expect(classOf(method)).toBe(kind);
});
