import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AgentStatus, AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  AgentChangeKind,
  type WatchAgentsResponse,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { ALICE, as, BOB, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
let requests = 0;
const newRequest = () => `request-${++requests}`;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const register = (id: string, parts: Record<string, unknown> = {}, principal = ALICE) =>
  platform.agents.registerAgent(
    { requestId: newRequest(), agent: { id, principal, ...parts } },
    as(principal),
  );

/** Returns the first `count` events of a watch as short texts. */
async function watch(count: number, afterSequence: bigint | undefined, caller = BOB, agentId = "") {
  const stop = new AbortController();
  const options = { ...as(caller), signal: stop.signal };
  const request = { agentId, sendStart: true, ...(afterSequence === undefined ? {} : { afterSequence }) };
  const events: string[] = [];
  for await (const event of platform.agents.watchAgents(request, options)) {
    events.push(inWords(event));
    if (events.length === count) break;
  }
  stop.abort();
  return events;
}

function inWords({ sequence, change }: WatchAgentsResponse): string {
  if (change === undefined) return `at ${sequence}`;
  const { agentId, kind, agent } = change;
  const name = Object.entries(AgentChangeKind).find(([, value]) => value === kind)?.[0];
  return `${sequence} ${agentId} ${name}${agent === undefined ? "" : " +"}`;
}

describe("WatchAgents", () => {
  it("reports every change in order, from any sequence on", async () => {
    await register("a", { leaseDuration: durationFromMs(1_000) });
    await platform.agents.publishCapabilities(
      { requestId: newRequest(), agentId: "a", capabilities: [capability("sum")] },
      as(ALICE),
    );
    await register("a", { leaseDuration: durationFromMs(1_000), description: "new" });
    await platform.agents.setAgentStatus({ agentId: "a", status: AgentStatus.DEPRECATED }, as(ALICE));
    await platform.agents.heartbeatAgent({ agentId: "a" }, as(ALICE));
    platform.clock.advance(2_000);
    const expected = [
      "1 a REGISTERED +",
      "2 a CAPABILITIES +",
      "3 a UPDATED +",
      "4 a STATUS +",
      "5 a LOST +",
    ];
    expect(await watch(6, 0n)).toEqual(["at 0", ...expected]);
    await platform.agents.heartbeatAgent({ agentId: "a" }, as(ALICE));
    await platform.agents.deregisterAgent({ agentId: "a" }, as(ALICE));
    await register("a");
    const expectedRest = ["6 a RETURNED +", "7 a REMOVED +", "8 a REGISTERED +"];
    expect(await watch(9, 0n)).toEqual(["at 0", ...expected, ...expectedRest]);
    for (let from = 0; from < 8; from++) {
      expect(await watch(9 - from, BigInt(from))).toEqual([
        `at ${from}`,
        ...[...expected, ...expectedRest].slice(from),
      ]);
    }
  });

  it("continues after the sequence of a list", async () => {
    await register("a");
    const { sequence } = await platform.agents.listAgents({}, as(BOB));
    expect(sequence).toBe(1n);
    const events = watch(2, sequence);
    await register("b");
    expect(await events).toEqual(["at 1", "2 b REGISTERED +"]);
  });

  it("starts with new changes without a sequence", async () => {
    await register("a");
    const stop = new AbortController();
    const stream = platform.agents.watchAgents({ sendStart: true }, { ...as(BOB), signal: stop.signal });
    const events = stream[Symbol.asyncIterator]();
    expect(inWords((await events.next()).value)).toBe("at 1");
    await register("b");
    expect(inWords((await events.next()).value)).toBe("2 b REGISTERED +");
    stop.abort();
  });

  it("starts with the first change unless the caller asks for the current position", async () => {
    await register("a");
    for await (const response of platform.agents.watchAgents({ afterSequence: 0n }, as(BOB))) {
      expect(inWords(response)).toBe("1 a REGISTERED +");
      break;
    }
  });

  it("reports only the agent in the request", async () => {
    await register("a");
    await register("b");
    await register("a", { description: "x" });
    expect(await watch(3, 0n, BOB, "a")).toEqual(["at 0", "1 a REGISTERED +", "3 a UPDATED +"]);
  });

  it("reports an agent while it is visible, and then its withdrawal", async () => {
    const NAMED = AgentVisibility.NAMED;
    await register("secret", { visibility: NAMED });
    await register("open");
    await register("open", { visibility: NAMED });
    await register("open", { visibility: NAMED, description: "hidden" });
    await register("end");
    expect(await watch(3, 0n)).toEqual(["at 0", "3 open WITHDRAWN", "5 end REGISTERED +"]);
    expect(await watch(6, 0n, ALICE)).toHaveLength(6);
    await register("secret", { visibility: NAMED, visibleTo: [BOB] });
    expect(await watch(2, 5n)).toEqual(["at 5", "6 secret UPDATED +"]);
  });

  it("refuses positions before the log's start and after its end", async () => {
    await platform.stop();
    platform = await startPlatform(["--agent-changes-kept", "3"]);
    for (let i = 0; i < 10; i++) await register("a", { description: `${i}` });
    for (const after of [0n, 6n, 11n]) {
      expect(await refusal(watch(1, after))).toMatchObject({
        reason: "REVISION_COMPACTED",
        metadata: { first_revision: "8" },
      });
    }
    expect(await watch(4, 7n)).toEqual(["at 7", "8 a UPDATED +", "9 a UPDATED +", "10 a UPDATED +"]);
  });

  it("continues after a restart", async () => {
    await register("a");
    await platform.restart();
    await register("b");
    expect(await watch(3, 0n)).toEqual(["at 0", "1 a REGISTERED +", "2 b REGISTERED +"]);
  });
});

describe("a restarted registry", () => {
  it("gives agents a minute to reconnect", async () => {
    await register("a", { leaseDuration: durationFromMs(1_000) });
    await platform.restart(3_600_000);
    const living = async () => (await platform.agents.getAgent({ agentId: "a" })).agent?.health;
    expect(await living()).toBe(3);
    platform.clock.advance(61_000);
    expect(await living()).toBe(2);
  });
});
