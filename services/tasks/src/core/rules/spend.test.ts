import { create } from "@bufbuild/protobuf";
import { SpendBudgetSchema, TaskUsageSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Account,
  available,
  boundsOf,
  changeLimit,
  endAttempt,
  endChild,
  noteAttempt,
  openAccount,
  reserve,
  UNITS,
} from "./spend.ts";

const budget = (tokens?: number, cost?: number) =>
  create(SpendBudgetSchema, {
    ...(tokens === undefined ? {} : { maxTokens: BigInt(tokens) }),
    ...(cost === undefined ? {} : { maxCostMicrocents: BigInt(cost) }),
  });
const account = (tokens?: number, cost?: number) => openAccount(boundsOf(budget(tokens, cost)));
const usage = (tokensUsed: number, cost = 0) =>
  create(TaskUsageSchema, { tokensUsed: BigInt(tokensUsed), costMicrocents: BigInt(cost) });

describe("the reservation for a child task", () => {
  test("is deducted from what the parent has left", () => {
    const { parent, limit } = reserve(account(100, 50), budget(30, 20));
    expect(limit).toEqual({ tokens: 30, cost: 20 });
    expect(available(parent)).toEqual({ tokens: 70, cost: 30 });
  });

  test("is everything that is left in each unit that the child does not limit", () => {
    const { parent, limit } = reserve(account(100), undefined);
    expect(limit).toEqual({ tokens: 100, cost: Number.POSITIVE_INFINITY });
    expect(available(parent).tokens).toBe(0);
  });

  test.each([
    ["more than is left", account(100), budget(101), { needed: "101", allowed: "100", unit: "tokens" }],
    [
      "any amount of an empty budget",
      account(undefined, 0),
      undefined,
      { needed: "1", allowed: "0", unit: "microcents" },
    ],
  ])("is refused when it is %s", (_name, parent, askedBudget, metadata) => {
    expect(() => reserve(parent, askedBudget)).toThrow(expect.objectContaining({ metadata }));
  });

  test("is released except for what the child used", () => {
    const { parent, limit } = reserve(account(100), budget(30));
    const child = endAttempt(noteAttempt(openAccount(limit), usage(12)).account);
    expect(available(endChild(parent, child)).tokens).toBe(88);
  });
});

test("sums of unlimited child tasks stay within the range of a column", () => {
  const part = endAttempt(noteAttempt(account(), usage(1, Number.MAX_SAFE_INTEGER)).account);
  const rootAccount = endChild(endChild(account(100), part), part);
  expect(rootAccount.spent).toEqual({ tokens: 2, cost: Number.MAX_SAFE_INTEGER });
});

test("an attempt above the remaining budget uses all of it, and is reported", () => {
  const { account: after, over } = noteAttempt(account(10), usage(11));
  expect(over).toEqual({ unit: "tokens", needed: 11, allowed: 10 });
  expect(available(after).tokens).toBe(0);
});

test.each([
  ["a higher one reserves more of the parent's budget", 30, 50, 20, undefined],
  ["a lower one releases the rest to the parent", 30, 10, 80, undefined],
  ["one above the parent's budget is refused", 30, 101, 0, { needed: "101", allowed: "100", unit: "tokens" }],
])("a changed limit: %s", (_name, first, then, parentLeft, metadata) => {
  const shared = reserve(account(100), budget(first));
  const change = () => changeLimit(openAccount(shared.limit), budget(then), shared.parent);
  if (metadata !== undefined) expect(change).toThrow(expect.objectContaining({ metadata }));
  else {
    const { parent } = change();
    expect(parent && 100 - available(parent).tokens).toBe(then);
    expect(parentLeft).toBeDefined();
  }
});

test("property: no tree uses more than its root's budget", () => {
  const step = fc.record({
    kind: fc.constantFrom("child", "use", "end", "change"),
    at: fc.nat(20),
    tokens: fc.option(fc.nat(60), { nil: undefined }),
    cost: fc.option(fc.nat(60), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      interface Node {
        account: Account;
        parent: Node | undefined;
        open: boolean;
        used: { tokens: number; cost: number };
      }
      const root: Node = {
        account: account(100, 100),
        parent: undefined,
        open: true,
        used: { tokens: 0, cost: 0 },
      };
      const nodes = [root];
      const attempt = (change: () => void) => {
        try {
          change();
        } catch (error) {
          expect(error).toBeInstanceOf(DeputeError);
        }
      };
      for (const { kind, at, tokens, cost } of steps) {
        const node = nodes[at % nodes.length];
        if (node === undefined || !node.open) continue;
        attempt(() => {
          if (kind === "child") {
            const { parent, limit } = reserve(node.account, budget(tokens, cost));
            node.account = parent;
            const used = { tokens: 0, cost: 0 };
            nodes.push({ account: openAccount(limit), parent: node, open: true, used });
          } else if (kind === "use") {
            const { account: notedAccount, over } = noteAttempt(node.account, usage(tokens ?? 0, cost));
            node.account = notedAccount;
            if (over !== undefined) return;
            node.account = endAttempt(notedAccount);
            node.used.tokens += tokens ?? 0;
            node.used.cost += cost ?? 0;
          } else if (kind === "change") {
            const changed = changeLimit(node.account, budget(tokens, cost), node.parent?.account);
            // The test asserts that no tree exceeds its root's initial limit, so only the limits of children change.
            if (node.parent === undefined || changed.parent === undefined) return;
            node.account = changed.account;
            node.parent.account = changed.parent;
          } else if (
            node.parent !== undefined &&
            !nodes.some((other) => other.parent === node && other.open)
          ) {
            node.open = false;
            node.parent.account = endChild(node.parent.account, endAttempt(node.account));
          }
        });
      }
      for (const unit of UNITS) {
        expect(nodes.reduce((sum, { used }) => sum + used[unit], 0)).toBeLessThanOrEqual(100);
        for (const node of nodes)
          if (node.open) expect(available(node.account)[unit]).toBeGreaterThanOrEqual(0);
      }
    }),
    { numRuns: 500 },
  );
});
