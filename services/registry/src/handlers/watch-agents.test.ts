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

/** The first `count` events of a watch, as short words. */
async function watch(count: number, afterRevision: bigint | undefined, caller = BOB, agentId = "") {
  const stop = new AbortController();
  const options = { ...as(caller), signal: stop.signal };
  const request = { agentId, ...(afterRevision === undefined ? {} : { afterRevision }) };
  const events: string[] = [];
  for await (const event of platform.agents.watchAgents(request, options)) {
    events.push(inWords(event));
    if (events.length === count) break;
  }
  stop.abort();
  return events;
}

function inWords({ event }: WatchAgentsResponse): string {
  if (event.case === "bookmark") return `at ${event.value}`;
  if (event.case !== "change") return "nothing";
  const { revision, agentId, kind, agent } = event.value;
  const name = Object.entries(AgentChangeKind).find(([, value]) => value === kind)?.[0];
  return `${revision} ${agentId} ${name}${agent === undefined ? "" : " +"}`;
}

describe("WatchAgents", () => {
  it("tells every change in its order, from any revision on", async () => {
    await register("a", { leaseMs: 1_000n });
    await platform.agents.publishCapabilities(
      { requestId: newRequest(), agentId: "a", capabilities: [capability("sum")] },
      as(ALICE),
    );
    await register("a", { leaseMs: 1_000n, description: "new" });
    await platform.agents.setAgentStatus({ id: "a", status: AgentStatus.DEPRECATED }, as(ALICE));
    await platform.agents.heartbeatAgent({ id: "a" }, as(ALICE));
    platform.clock.advance(2_000);
    const expected = [
      "1 a REGISTERED +",
      "2 a CAPABILITIES +",
      "3 a UPDATED +",
      "4 a STATUS +",
      "5 a LOST +",
    ];
    expect(await watch(6, 0n)).toEqual(["at 0", ...expected]);
    await platform.agents.heartbeatAgent({ id: "a" }, as(ALICE));
    await platform.agents.deregisterAgent({ id: "a" }, as(ALICE));
    await register("a");
    const rest = ["6 a RETURNED +", "7 a REMOVED +", "8 a REGISTERED +"];
    expect(await watch(9, 0n)).toEqual(["at 0", ...expected, ...rest]);
    for (let from = 0; from < 8; from++) {
      expect(await watch(9 - from, BigInt(from))).toEqual([
        `at ${from}`,
        ...[...expected, ...rest].slice(from),
      ]);
    }
  });

  it("goes on from the revision of a list, with what comes after it", async () => {
    await register("a");
    const { revision } = await platform.agents.listAgents({}, as(BOB));
    expect(revision).toBe(1n);
    const events = watch(2, revision);
    await register("b");
    expect(await events).toEqual(["at 1", "2 b REGISTERED +"]);
  });

  it("begins now when no revision is named", async () => {
    await register("a");
    const stop = new AbortController();
    const stream = platform.agents.watchAgents({}, { ...as(BOB), signal: stop.signal });
    const events = stream[Symbol.asyncIterator]();
    expect(inWords((await events.next()).value)).toBe("at 1");
    await register("b");
    expect(inWords((await events.next()).value)).toBe("2 b REGISTERED +");
    stop.abort();
  });

  it("keeps to one agent when one is named", async () => {
    await register("a");
    await register("b");
    await register("a", { description: "x" });
    expect(await watch(3, 0n, BOB, "a")).toEqual(["at 0", "1 a REGISTERED +", "3 a UPDATED +"]);
  });

  it("tells of an agent as long as it is seen, and that it is withdrawn", async () => {
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

  it("answers explicitly where history was compacted, or never was", async () => {
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

  it("goes on over a restart", async () => {
    await register("a");
    await platform.restart();
    await register("b");
    expect(await watch(3, 0n)).toEqual(["at 0", "1 a REGISTERED +", "2 b REGISTERED +"]);
  });
});

describe("a registry that was away", () => {
  it("gives agents a minute to find it again", async () => {
    await register("a", { leaseMs: 1_000n });
    await platform.restart(3_600_000);
    const living = async () => (await platform.agents.getAgent({ id: "a" })).agent?.health;
    expect(await living()).toBe(3);
    platform.clock.advance(61_000);
    expect(await living()).toBe(2);
  });
});
