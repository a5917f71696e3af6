import { create } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  AgentService,
  ListAgentsResponseSchema,
  WatchAgentsResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AnswerRoom, bytesOf, checkAnswer, cutPage, MAX_ANSWER_BYTES, pageOfList } from "./answer-limit.ts";

const MIB = 1024 * 1024;
const agents = (...bytes: number[]) =>
  bytes.map((size, index) => create(AgentSchema, { id: `a${index}`, description: "d".repeat(size) }));
const sizeOf = (agent: Agent) => bytesOf(AgentSchema, agent);
const cut = (agentList: Agent[], size: number) => {
  const { items, more } = cutPage(agentList, size, sizeOf);
  return [items.length, more];
};

describe("a page", () => {
  it.each<[string, Agent[], number, (number | boolean)[]]>([
    ["has all elements", agents(1, 1), 2, [2, false]],
    ["ends at its size", agents(1, 1, 1), 2, [2, true]],
    ["ends before the element that does not fit", agents(MIB, MIB, MIB), 10, [2, true]],
    ["has a single element that exceeds the limit", agents(5 * MIB, 1), 10, [1, true]],
    ["ends before an element that exceeds the limit", agents(1, 5 * MIB), 10, [1, true]],
    ["of no elements is empty", [], 10, [0, false]],
  ])("%s", (_, agentList, size, expected) => {
    expect(cut(agentList, size)).toEqual(expected);
  });

  it("after page returns each element once, and only a single element can exceed the limit", () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 4 * MIB }), { maxLength: 6 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 5 }), (bytes, size) => {
        const all = agents(...bytes);
        const read: Agent[] = [];
        for (let more = true; more && all.length > 0; ) {
          const page = cutPage(all.slice(read.length, read.length + size + 1), size, sizeOf);
          const answer = create(ListAgentsResponseSchema, {
            agents: page.items,
            nextPageToken: "t".repeat(512),
          });
          const isSmall = bytesOf(ListAgentsResponseSchema, answer) <= MAX_ANSWER_BYTES;
          expect(isSmall || page.items.length === 1).toBe(true);
          expect(page.items.length).toBeGreaterThan(0);
          read.push(...page.items);
          more = page.more;
        }
        expect(read).toEqual(all);
      }),
      { numRuns: 30 },
    );
  });

  it("accepts no further element after one that does not fit, however small", () => {
    const room = new AnswerRoom(100);
    expect([room.takes(50), room.takes(60), room.takes(1)]).toEqual([true, false, false]);
  });
});

describe("a page of a list in memory", () => {
  const page = (agentList: Agent[], pageToken: string, list = "l") =>
    pageOfList(agentList, { pageSize: 2, pageToken }, { list }, ({ id }) => id, sizeOf);
  const ids = (agentList: Agent[]) => agentList.map(({ id }) => id);

  it("follows the last element of the page before, also after an insertion or a removal", () => {
    const all = agents(1, 1, 1, 1, 1);
    const first = page(all, "");
    expect(ids(first.items)).toEqual(["a0", "a1"]);
    expect(ids(page([create(AgentSchema, { id: "new" }), ...all], first.nextPageToken).items)).toEqual([
      "a2",
      "a3",
    ]);
    const removed = all.filter(({ id }) => id !== "a1");
    expect(ids(page(removed, first.nextPageToken).items)).toEqual(["a2", "a3"]);
    expect(page(all.slice(0, 2), "").nextPageToken).toBe("");
  });

  it("refuses the token of another list", () => {
    const { nextPageToken } = page(agents(1, 1, 1), "");
    expect(() => page(agents(1, 1, 1), nextPageToken, "other")).toThrow(/page_token/);
  });
});

describe("the check before an answer is sent", () => {
  const { listAgents, watchAgents } = AgentService.method;
  const check = (agentList: Agent[]) => {
    const message = create(ListAgentsResponseSchema, { agents: agentList });
    checkAnswer(listAgents, message, bytesOf(ListAgentsResponseSchema, message));
  };

  it("refuses an answer of several elements above the limit, and names a remedy", () => {
    expect(() => check(agents(2 * MIB, 2 * MIB))).toThrow(
      /larger than 3145728 bytes; request fewer elements/,
    );
  });

  it("accepts a single larger element, and a message without lists", () => {
    check(agents(5 * MIB));
    const [agent] = agents(5 * MIB);
    const change = { change: { agent: agent as Agent } };
    checkAnswer(watchAgents, create(WatchAgentsResponseSchema, change), 5 * MIB);
  });
});
