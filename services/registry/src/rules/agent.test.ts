import { create, toBinary } from "@bufbuild/protobuf";
import { AgentHealth, AgentSchema, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { fromTimestamp, toTimestamp } from "@depute/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isLiving, present, register } from "./agent.ts";
import { healthAt, leaseExpiry, NO_EXPIRY, NO_HEARTBEAT } from "./liveness.ts";

const agent = create(AgentSchema, { id: "a", description: "d", leaseMs: 1_000n });
const at = (now: number) => ({ now, asOf: now });

describe("register", () => {
  it("keeps nothing of what only the registry says", () => {
    const said = create(AgentSchema, {
      ...agent,
      status: AgentStatus.REMOVED,
      health: AgentHealth.LOST,
      capabilityIds: ["x"],
      createTime: toTimestamp(1),
    });
    const stored = register(said, undefined, 5_000);
    expect(toBinary(AgentSchema, stored.record)).toEqual(toBinary(AgentSchema, agent));
    expect(stored).toMatchObject({ status: AgentStatus.ACTIVE, capabilityIds: [], createTime: 5_000 });
  });

  it("keeps the capabilities and the time of creation of the known one, and nothing else", () => {
    const known = { ...register(agent, undefined, 1), status: AgentStatus.REMOVED, capabilityIds: ["x"] };
    const changed = create(AgentSchema, { id: "a", leaseMs: 0n });
    const stored = register(changed, known, 9_000);
    expect(stored).toMatchObject({ status: AgentStatus.ACTIVE, capabilityIds: ["x"], createTime: 1 });
    expect(stored).toMatchObject({ updateTime: 9_000, heartbeatTime: NO_HEARTBEAT, expireTime: NO_EXPIRY });
    expect(stored.record.description).toBe("");
  });
});

describe("present", () => {
  it("says the end of a lease that there is", () => {
    const stored = register(agent, undefined, 5_000);
    expect(fromTimestamp(present(stored, at(5_000)).leaseExpireTime as never)).toBe(6_000);
    const endless = register(create(AgentSchema, { id: "a" }), undefined, 5_000);
    expect(present(endless, at(5_000)).leaseExpireTime).toBeUndefined();
  });

  it("leaves what is kept as it was", () => {
    const stored = register(agent, undefined, 5_000);
    present(stored, at(5_000));
    expect(stored.record.createTime).toBeUndefined();
  });
});

describe("isLiving", () => {
  const stored = register(agent, undefined, 5_000);

  it.each<[string, typeof stored, number, boolean]>([
    ["before the lease ends", stored, 5_999, true],
    ["when it ends", stored, 6_000, false],
    ["removed", { ...stored, status: AgentStatus.REMOVED }, 5_000, false],
    ["without a lease", { ...stored, expireTime: NO_EXPIRY }, 9e14, true],
  ])("%s", (_, each, now, expected) => {
    expect(isLiving(each, at(now))).toBe(expected);
  });
});

describe("an agent that has never sent a heartbeat", () => {
  const stored = register(agent, undefined, 5_000);

  it.each([
    [5_999, AgentHealth.UNKNOWN],
    [6_000, AgentHealth.LOST],
  ])("has at %i the health %i", (now, health) => {
    const presented = present(stored, at(now));
    expect([presented.health, presented.heartbeatTime]).toEqual([health, undefined]);
  });

  it("is known to live once it has sent one, also after another registration", () => {
    const beaten = { ...stored, heartbeatTime: 5_500 };
    expect(present(beaten, at(5_999)).health).toBe(AgentHealth.ALIVE);
    expect(present(register(agent, beaten, 9_000), at(9_000)).health).toBe(AgentHealth.ALIVE);
  });
});

describe("a lease", () => {
  it("lasts for its length from the last heartbeat, to the millisecond", () => {
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
