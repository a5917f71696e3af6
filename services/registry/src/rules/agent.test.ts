import { create, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AgentHealth, AgentSchema, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { fromTimestamp, toTimestamp } from "@depute/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createStoredAgent,
  healthAt,
  isLive,
  leaseExpiry,
  NO_EXPIRY,
  NO_HEARTBEAT,
  toAgentMessage,
} from "./agent.ts";

const agent = create(AgentSchema, { id: "a", description: "d", leaseDuration: durationFromMs(1_000) });
const at = (now: number) => ({ now, asOf: now });

describe("createStoredAgent", () => {
  it("drops the members that only the registry sets", () => {
    const ownMembers = create(AgentSchema, {
      ...agent,
      status: AgentStatus.REMOVED,
      health: AgentHealth.LOST,
      capabilityIds: ["x"],
      createTime: toTimestamp(1),
    });
    const stored = createStoredAgent(ownMembers, undefined, 5_000);
    expect(toBinary(AgentSchema, stored.record)).toEqual(toBinary(AgentSchema, agent));
    expect(stored).toMatchObject({ status: AgentStatus.ACTIVE, capabilityIds: [], createTime: 5_000 });
  });

  it("keeps only the capabilities and the creation time of the known agent", () => {
    const registered = {
      ...createStoredAgent(agent, undefined, 1),
      status: AgentStatus.REMOVED,
      capabilityIds: ["x"],
    };
    const changed = create(AgentSchema, { id: "a", leaseDuration: durationFromMs(0) });
    const stored = createStoredAgent(changed, registered, 9_000);
    expect(stored).toMatchObject({ status: AgentStatus.ACTIVE, capabilityIds: ["x"], createTime: 1 });
    expect(stored).toMatchObject({ updateTime: 9_000, heartbeatTime: NO_HEARTBEAT, expireTime: NO_EXPIRY });
    expect(stored.record.description).toBe("");
  });
});

describe("toAgentMessage", () => {
  it("contains the end of a lease, if it has one", () => {
    const stored = createStoredAgent(agent, undefined, 5_000);
    expect(fromTimestamp(toAgentMessage(stored, at(5_000)).leaseExpireTime as never)).toBe(6_000);
    const endless = createStoredAgent(create(AgentSchema, { id: "a" }), undefined, 5_000);
    expect(toAgentMessage(endless, at(5_000)).leaseExpireTime).toBeUndefined();
  });

  it("does not change the stored record", () => {
    const stored = createStoredAgent(agent, undefined, 5_000);
    toAgentMessage(stored, at(5_000));
    expect(stored.record.createTime).toBeUndefined();
  });
});

describe("isLive", () => {
  const stored = createStoredAgent(agent, undefined, 5_000);

  it.each<[string, typeof stored, number, boolean]>([
    ["before the lease ends", stored, 5_999, true],
    ["when it ends", stored, 6_000, false],
    ["removed", { ...stored, status: AgentStatus.REMOVED }, 5_000, false],
    ["without a lease", { ...stored, expireTime: NO_EXPIRY }, 9e14, true],
  ])("%s", (_, each, now, expected) => {
    expect(isLive(each, at(now))).toBe(expected);
  });
});

describe("an agent that has never sent a heartbeat", () => {
  const stored = createStoredAgent(agent, undefined, 5_000);

  it.each([
    [5_999, AgentHealth.UNKNOWN],
    [6_000, AgentHealth.LOST],
  ])("has at %i the health %i", (now, health) => {
    const message = toAgentMessage(stored, at(now));
    expect([message.health, message.heartbeatTime]).toEqual([health, undefined]);
  });

  it("is ALIVE after its first heartbeat, also after another registration", () => {
    const afterHeartbeat = { ...stored, heartbeatTime: 5_500 };
    expect(toAgentMessage(afterHeartbeat, at(5_999)).health).toBe(AgentHealth.ALIVE);
    expect(toAgentMessage(createStoredAgent(agent, afterHeartbeat, 9_000), at(9_000)).health).toBe(
      AgentHealth.ALIVE,
    );
  });
});

describe("a lease", () => {
  it("lasts its full duration from the last heartbeat, to the millisecond", () => {
    const times = fc.integer({ min: 1, max: 4e12 });
    const leases = fc.integer({ min: 1_000, max: 86_400_000 });
    fc.assert(
      fc.property(times, leases, fc.integer({ min: 0, max: 2e8 }), (beat, lease, later) => {
        const stored = { expireTime: leaseExpiry(beat, lease), heartbeatTime: beat };
        const expected = later < lease ? AgentHealth.ALIVE : AgentHealth.LOST;
        expect(healthAt(stored, at(beat + later))).toBe(expected);
      }),
    );
  });
});
