import { ErrorReason } from "@depute/core";
import { describe, expect, it } from "vitest";
import {
  assertReplicasRotate,
  type ListedReplica,
  MAX_OVERLAPPING,
  MAX_ROOT_KEYS,
  nextRetirement,
  ROOT_ROTATION,
  type RootKeyLife,
  retirementEnd,
  rootKeyState,
  rootRetired,
  rotationEnds,
} from "./root-key.ts";

const NOW = 1_000_000;
const key = (principal: string, retireTime: number, isRetired = false): RootKeyLife => ({
  ...{ principal, createTime: 1, retireTime, isRetired },
});

describe("the state of a root key", () => {
  it.each([
    ["without an end", 0, "signing"],
    ["before its end", NOW + 1, "verifying"],
    ["at its end", NOW, "retired"],
    ["after its end", NOW - 1, "retired"],
  ])("%s is %s", (_, retireTime, state) => {
    expect(rootKeyState(key("a", retireTime), NOW)).toBe(state);
  });

  it("is retired for good once it is marked so, also by a clock that is behind", () => {
    expect(rootKeyState(key("a", NOW, true), NOW - 60_000)).toBe("retired");
  });
});

describe("a rotation sets the ends of the earlier keys", () => {
  const old = key("old", NOW - 10);
  it.each<[string, RootKeyLife[], number, [string, number][]]>([
    ["the signing key gets the overlap", [key("a", 0)], 60, [["a", NOW + 60]]],
    ["a sooner end stays", [key("a", NOW + 10), key("b", 0)], 60, [["b", NOW + 60]]],
    [
      "a later end becomes sooner",
      [key("a", NOW + 90), key("b", 0)],
      60,
      [
        ["a", NOW + 60],
        ["b", NOW + 60],
      ],
    ],
    [
      "without an overlap all end now",
      [old, key("a", NOW + 90), key("b", 0)],
      0,
      [
        ["a", NOW],
        ["b", NOW],
      ],
    ],
    ["a retired key keeps its end", [old, key("a", 0)], 60, [["a", NOW + 60]]],
  ])("%s", (_, keys, overlapMs, ends) => {
    const expected = ends.map(([principal, retireTime]) => ({
      ...{ principal, retireTime },
      isRetired: overlapMs === 0,
    }));
    expect(rotationEnds(keys, NOW, overlapMs)).toEqual(expected);
  });

  const overlapping = Array.from({ length: MAX_OVERLAPPING }, (_, n) => key(`o${n}`, NOW + 100 + n));
  const retired = Array.from({ length: MAX_ROOT_KEYS }, (_, n) => key(`r${n}`, 1));

  it.each([
    ["too many overlapping keys", overlapping, 60, "overlapping_root_keys"],
    ["too many keys", retired, 60, "root_keys"],
    ["too many keys, without an overlap", retired, 0, "root_keys"],
  ])("refuses %s", (_, keys, overlapMs, limit) => {
    const rotate = () => rotationEnds([...keys, key("a", 0)], NOW, overlapMs);
    expect(rotate).toThrow(
      expect.objectContaining({
        reason: ErrorReason.LIMIT_EXCEEDED,
        metadata: expect.objectContaining({ limit }),
      }),
    );
  });

  it("without an overlap is possible in spite of many overlapping keys", () => {
    expect(rotationEnds([...overlapping, key("a", 0)], NOW, 0)).toHaveLength(MAX_OVERLAPPING + 1);
  });
});

describe("a retirement", () => {
  const keys = [key("gone", NOW - 1), key("earlier", NOW + 60), key("signing", 0)];

  it.each([
    ["earlier", { principal: "earlier", retireTime: NOW, isRetired: true }],
    ["gone", undefined],
  ])("of %j is %j", (principal, end) => {
    expect(retirementEnd(keys, principal, NOW)).toEqual(end);
  });

  it.each([
    ["signing", ErrorReason.KEY_NOT_USABLE],
    ["unknown", ErrorReason.KEY_NOT_FOUND],
  ])("of %j is refused", (principal, reason) => {
    expect(() => retirementEnd(keys, principal, NOW)).toThrow(expect.objectContaining({ reason }));
  });

  it("has its next time, or none", () => {
    expect(nextRetirement(keys, NOW)).toBe(NOW + 60);
    expect(nextRetirement(keys, NOW + 60)).toBe(Number.POSITIVE_INFINITY);
  });

  it("is stated in the denial", () => {
    expect(rootRetired(0)).toEqual({
      type: "root_retired",
      detail:
        "authority.issuer: the root key retired at 1970-01-01T00:00:00.000Z; get a token of the present root",
    });
  });
});

describe("the replicas at a rotation", () => {
  const replica = (change: Partial<ListedReplica> = {}): ListedReplica => ({
    ...{ service: "tokens", address: "http://10.0.0.1:8083", version: "0.9.0", status: "serving" },
    ...{ features: [ROOT_ROTATION], ...change },
  });

  it.each<[string, ListedReplica[]]>([
    ["none is listed", []],
    ["all know it", [replica(), replica({ status: "not serving", features: ["other", ROOT_ROTATION] })]],
    ["an older one is lost", [replica(), replica({ status: "lost", features: [] })]],
    ["an older one is of another service", [replica({ service: "tasks", features: [] })]],
  ])("allow it where %s", (_, replicas) => {
    expect(() => assertReplicasRotate(replicas)).not.toThrow();
  });

  it.each<[string, ListedReplica, string]>([
    ["serves", replica({ features: [] }), "http://10.0.0.1:8083 (version 0.9.0)"],
    ["does not serve yet", replica({ status: "not serving", features: ["other"] }), "(version 0.9.0)"],
    ["states no version", replica({ version: "", features: [] }), "(version unknown)"],
  ])("refuse it where an older one %s", (_, older, text) => {
    expect(() => assertReplicasRotate([replica(), older])).toThrow(
      expect.objectContaining({
        ...{ reason: ErrorReason.REPLICA_TOO_OLD, message: expect.stringContaining(text) },
        metadata: { replicas: older.address },
      }),
    );
  });

  it("are named up to a limit", () => {
    const older = Array.from({ length: 30 }, (_, n) => replica({ address: `http://r:${n}`, features: [] }));
    const named = older.slice(0, 10).map(({ address }) => address);
    expect(() => assertReplicasRotate(older)).toThrow(
      expect.objectContaining({
        ...{ message: expect.stringMatching(/^30 replicas /), metadata: { replicas: named.join(",") } },
      }),
    );
  });
});
