import { verifyTranscript } from "@depute/asp";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { portableEngine } from "@depute/dct";
import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { freePorts } from "depute/ports";
import { afterEach, expect, test } from "vitest";
import { CleanUp, dataFolder } from "../faults/platform.ts";
import { ALPHA, BETA, GAMMA, overGrpc, write } from "./cast.ts";
import { connect, register } from "./platform.ts";
import { LINES, play } from "./scenario.ts";

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

const CAST = [ALPHA, BETA, GAMMA];

test("a killed platform has every acknowledged message after its restart, and continues delegated work", {
  timeout: 90_000,
}, async () => {
  const [port = 0] = await freePorts(1);
  const env = { DEPUTE_DATA_DIR: await dataFolder(cleanUp), DEPUTE_LOG_LEVEL: "fatal" };
  const start = async () => {
    const started = await startPlatformProcess(["start", "--gateway-port", String(port)], env);
    cleanUp.add(() => started.stop());
    const { close, ...platform } = connect(started.about);
    cleanUp.add(async () => close());
    return { started, platform };
  };
  const first = await start();
  for (const one of CAST) await register(first.platform, one);
  const wires = (platform: typeof first.platform) =>
    new Map(CAST.map((one) => [one, overGrpc(platform.sessions)]));
  // The number of lines up to Gamma's acceptance. After that line the acceptance is durable, but its task may not exist
  // yet.
  const accepted = 8;
  const { sessionId } = await play(wires(first.platform), accepted);
  const before = await first.platform.sessions.listMessages({ sessionId });
  await first.started.stop("SIGKILL");

  const { platform } = await start();
  expect((await platform.sessions.listMessages({ sessionId })).entries).toEqual(before.entries);
  const wire = overGrpc(platform.sessions);
  for (const [who, performative, body, state, recipient] of LINES.slice(accepted)) {
    await wire.append(write(who, performative, body, await wire.get(sessionId), recipient));
    expect((await wire.get(sessionId)).state).toBe(state);
  }
  const events: (string | undefined)[] = [];
  for await (const { taskEvent: event } of platform.sessions.watchDelegation({
    sessionId,
    delegationId: "del_001",
  })) {
    events.push(event?.payload.case);
  }
  expect(events).toEqual(["created", "accepted", "started", "completed"]);
  const { transcript } = await platform.sessions.exportTranscript({ sessionId });
  if (transcript === undefined) throw new Error("no transcript");
  const keyOf = (uri: string) => CAST.find((one) => one.uri === uri)?.key;
  const verdict = verifyTranscript(transcript, { engine: portableEngine, keyOf });
  expect(verdict.ok && verdict.session.state).toBe(SessionState.CLOSED);
});
