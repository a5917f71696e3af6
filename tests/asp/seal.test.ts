import { createClient } from "@connectrpc/connect";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { refusal } from "@depute/service/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ALPHA, BETA, documentOf, GAMMA, overHttp, proofAt, write } from "./cast.ts";
import { digestOf, faultOfSeal, headOf, type Keys, type Sealed } from "./foreign-seal.ts";
import { type Platform, register, startPlatform } from "./platform.ts";
import { invite, play } from "./scenario.ts";

/** In this file the platform makes seals, and a program without the platform's code verifies them. */

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
  for (const one of [ALPHA, BETA, GAMMA]) await register(platform, one);
});
afterAll(() => platform.stop());

const get = async (path: string) => documentOf(await fetch(`${platform.url}${path}`));
const transcriptOf = async (sessionId: string) =>
  (await get(`/v1/asp/sessions/${sessionId}/transcript`)) as unknown as Sealed;

test("a seal is checked with the published keys alone", async () => {
  const { sessionId } = await play(
    new Map([ALPHA, BETA, GAMMA].map((one) => [one, overHttp(platform.url)])),
    9,
  );
  const transcript = await transcriptOf(sessionId);
  const { key, log } = transcript.seal;
  const keys = await get("/v1/asp/keys");
  expect(keys).toEqual({ format: "asp-transcript-keys/0.1", sealKeys: [key], logKeys: [log.logKey] });
  expect(faultOfSeal(transcript, keys as unknown as Keys)).toBeUndefined();
  const digest = digestOf(headOf(transcript));
  expect(await get(`/log/proofs/inclusion?digest=${digest}`)).toMatchObject({
    entry: { index: log.index, kind: "session_head" },
  });
});

test("the same head is logged once, another head is another leaf", async () => {
  const wire = overHttp(platform.url);
  const { sessionId } = await invite(wire);
  const size = async () => (await get("/log/head")).treeSize as number;
  const before = await size();
  const first = await transcriptOf(sessionId);
  const again = await Promise.all([1, 2, 3].map(() => transcriptOf(sessionId)));
  expect(await size()).toBe(before + 1);
  for (const { seal } of again) expect(seal.log.index).toBe(first.seal.log.index);
  await wire.append(write(BETA, "ACCEPT", { referenceId: "inv" }, await wire.get(sessionId)));
  const next = await transcriptOf(sessionId);
  expect(next.seal.log.index).not.toBe(first.seal.log.index);
  expect(await size()).toBe(before + 2);
});

test("a caller with its own key cannot write heads into the log", async () => {
  const transport = createGrpcJsTransport(new URL(platform.url).host);
  const log = createClient(LogService, transport);
  const hash = `sha256:${"0".repeat(64)}`;
  const head = {
    sessionId: "019526b1-0000-7000-8000-000000000002",
    length: 1,
    lastHash: hash,
    recordHash: hash,
  };
  const headers = { dpop: proofAt(ALPHA, `${platform.url}/${LogService.typeName}/AppendSessionHead`) };
  expect(await refusal(log.appendSessionHead(head, { headers }))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  transport.close();
});
