import { createHash } from "node:crypto";
import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asCaller, type Bench, begin, openBench } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { collect, refusal } from "../../testing/platform.ts";
import { decide } from "../../testing/reviews.ts";

const CHIEF = `${"D".repeat(42)}M`;
const [HER, ME, BOSS, STRANGER] = [
  asCaller(ALICE),
  asCaller(BOB),
  asCaller(CHIEF),
  asCaller(`${"C".repeat(42)}I`),
];
const BYTES = new TextEncoder().encode("a table, too large to be a value");
const sha256 = new Uint8Array(createHash("sha256").update(BYTES).digest());

let bench: Bench;
let taskId: string;
let count = 0;
beforeEach(async () => {
  bench = await openBench();
  taskId = await create();
});
afterEach(() => bench.close());

async function create(): Promise<string> {
  const requestId = `request ${++count}`;
  return (
    (await bench.tasks.createTask({ requestId, draft: { agentId: "bob", description: requestId } }, HER)).task
      ?.id ?? ""
  );
}

async function announce(
  options = HER,
  init: { sizeBytes?: bigint; sha256?: Uint8Array } = {},
): Promise<string> {
  const request = {
    taskId,
    name: "table.csv",
    mediaType: "text/csv",
    sizeBytes: BigInt(BYTES.length),
    sha256,
    ...init,
  };
  return (await bench.artifacts.createArtifact(request, options)).artifact?.id ?? "";
}

const write = (artifactId: string, from: number, to: number, options = HER) =>
  bench.artifacts.writeArtifact({ artifactId, offset: BigInt(from), data: BYTES.slice(from, to) }, options);

async function read(artifactId: string, options = HER, offset = 0n): Promise<string> {
  const pieces = await collect(bench.artifacts.readArtifact({ artifactId, offset }, options));
  return Buffer.concat(pieces.map(({ data }) => data)).toString();
}

describe("an artifact", () => {
  test("is written in pieces, checked, and read by the delegate and the delegator", async () => {
    const id = await announce();
    await write(id, 0, 10);
    expect((await write(id, 10, 20)).artifact).toMatchObject({ writtenBytes: 20n, isComplete: false });
    expect(await refusal(read(id))).toMatchObject({ reason: "ARTIFACT_NOT_FOUND" });
    expect((await write(id, 15, BYTES.length)).artifact).toMatchObject({ isComplete: true });
    for (const options of [HER, ME]) expect(await read(id, options)).toBe(Buffer.from(BYTES).toString());
    expect(await read(id, ME, 8n)).toBe(Buffer.from(BYTES.slice(8)).toString());
    expect(await refusal(read(id, STRANGER))).toMatchObject({ reason: "ARTIFACT_NOT_FOUND" });
    expect(await refusal(read(id, HER, 99n))).toMatchObject({ fields: ["offset"] });
  });

  test("is the same artifact after a repeated write and a repeated announcement", async () => {
    const id = await announce();
    expect(await announce()).toBe(id);
    await write(id, 0, BYTES.length);
    expect((await write(id, 0, BYTES.length)).artifact).toMatchObject({ isComplete: true });
    const { artifacts } = await bench.artifacts.listArtifacts({ taskId }, ME);
    expect(artifacts).toMatchObject([{ id, name: "table.csv", sha256, creator: ALICE }]);
  });

  test("that differs from its announcement is refused, and its creator can write it again", async () => {
    const id = await announce(HER, { sha256: new Uint8Array(32) });
    expect(await refusal(write(id, 0, BYTES.length))).toMatchObject({
      reason: "DIGEST_MISMATCH",
      metadata: { actual: Buffer.from(sha256).toString("hex") },
    });
    expect((await write(id, 0, 5)).artifact).toMatchObject({ writtenBytes: 5n });
  });

  test("has no gaps, ends at its size, and is written by its creator alone", async () => {
    const id = await announce();
    expect(await refusal(write(id, 1, 5))).toMatchObject({ fields: ["offset"] });
    const beyond = { artifactId: id, data: new Uint8Array(BYTES.length + 1) };
    expect(await refusal(bench.artifacts.writeArtifact(beyond, HER))).toMatchObject({ fields: ["data"] });
    expect(await refusal(write(id, 0, 5, ME))).toMatchObject({ reason: "ARTIFACT_NOT_FOUND" });
  });

  test("belongs to an open task, within the limits of the task", async () => {
    expect(await refusal(announce(STRANGER))).toMatchObject({ reason: "TASK_NOT_FOUND" });
    const large = BigInt(64 * 1024 * 1024);
    for (let i = 0; i < 4; i++) await announce(HER, { sizeBytes: large, sha256: new Uint8Array(32).fill(i) });
    expect(await refusal(announce())).toMatchObject({ metadata: { limit: "artifacts.bytes" } });
    const pages = ["", "", ""];
    let pageToken = "";
    for (const page of pages.keys()) {
      const answer = await bench.artifacts.listArtifacts({ taskId, pageSize: 3, pageToken }, HER);
      pages[page] = answer.artifacts.map((artifact) => artifact.sha256[0]).join();
      pageToken = answer.nextPageToken;
      if (pageToken === "") break;
    }
    expect(pages).toEqual(["0,1,2", "3", ""]);
    expect(await refusal(bench.artifacts.listArtifacts({ taskId, pageToken: "x" }, HER))).toMatchObject({
      reason: "PAGE_TOKEN_INVALID",
    });
    await bench.tasks.cancelTask({ taskId }, HER);
    expect(await refusal(announce(ME))).toMatchObject({ reason: "TASK_STATE_CONFLICT" });
  });

  test("of a worker with an overseer is hidden from the delegator until its approval", async () => {
    bench.fakes.agents.set("chief", { principal: CHIEF, active: true });
    bench.fakes.agents.set("bob", { principal: BOB, active: true, overseer: "chief" });
    await begin(bench, "bob", ME);
    taskId = await create();
    const lease = await begin(bench, "bob", ME);
    const id = await announce(ME);
    await write(id, 0, BYTES.length, ME);
    await bench.workers.completeAssignment({ lease, output: { full: fromJson(ValueSchema, id) } }, ME);
    expect(await refusal(read(id))).toMatchObject({ reason: "ARTIFACT_NOT_FOUND" });
    expect((await bench.artifacts.listArtifacts({ taskId }, HER)).artifacts).toEqual([]);
    expect(await read(id, BOSS)).toContain("table");
    await decide(bench, taskId, ReviewVerdict.APPROVED);
    expect(await read(id)).toContain("table");
  });
});
