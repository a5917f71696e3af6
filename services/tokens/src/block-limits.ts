import { type CryptoEngine, revocationIds, type VerifyResult } from "@depute/dct";
import type { BlockNotes, Notes } from "./block-notes.ts";
import type { Chains, Verification } from "./chains.ts";
import { type CallPlace, outOfPlace } from "./rules/bindings.ts";
import { parsed } from "./rules/blocks.ts";
import { isAfterBudget } from "./rules/order.ts";
import { remaining, spentUp } from "./rules/spend.ts";

/** A decision with what is noted of the token's blocks; `singleUse`: those of them that count once. */
export interface Limited {
  readonly result: VerifyResult;
  readonly singleUse: readonly string[];
}

/**
 * Counts what was spent and reserved under each block (DelegateOS 10.1 step 6), and holds a token that is otherwise
 * allowed to where its blocks count. The store is asked only for a token that got as far as that step; of one that was
 * denied later the step is repeated, since its reason comes first.
 */
export async function withNotes(
  { engine, notes, chains }: { engine: CryptoEngine; notes: BlockNotes; chains: Chains },
  { result, verification }: { result: VerifyResult; verification: Verification },
  place: CallPlace,
): Promise<Limited> {
  if (!result.ok && !isAfterBudget(result.denial)) return { result, singleUse: [] };
  const token = result.ok ? result.token : parsed(verification.input);
  if (token === undefined) return { result, singleUse: [] };
  const ids = result.ok
    ? result.blocks.map(({ revocationId }) => revocationId)
    : revocationIds(engine, token);
  const noted = await notes.read(ids);
  if (noted === undefined) return { result, singleUse: [] };
  const { singleUse } = noted;
  return { result: limited(result, ids, noted, { verification, chains, place }), singleUse };
}

function limited(
  result: VerifyResult,
  ids: readonly string[],
  { counted, bindings }: Notes,
  { verification, chains, place }: { verification: Verification; chains: Chains; place: CallPlace },
): VerifyResult {
  const misplaced = outOfPlace(bindings, place);
  const inPlace = (allowed: VerifyResult): VerifyResult => {
    return allowed.ok && misplaced !== undefined ? { ok: false, denial: misplaced } : allowed;
  };
  if (counted.every((amount) => amount === 0)) return inPlace(result);
  // The caller's own count is of the last block.
  const { spentMicrocents } = verification.context;
  const own = typeof spentMicrocents === "number" ? spentMicrocents : 0;
  const last = ids.length - 1;
  const total = counted.map((amount, i) =>
    Math.min(amount + (i === last ? own : 0), Number.MAX_SAFE_INTEGER),
  );
  if (!result.ok) {
    return chains.repeat(verification, {
      spentMicrocents: (id) => total[ids.indexOf(id)] ?? Number.MAX_SAFE_INTEGER,
    });
  }
  const levels = result.blocks.map(({ maxBudgetMicrocents }, i) => {
    return { maxBudgetMicrocents, counted: total[i] ?? Number.MAX_SAFE_INTEGER };
  });
  const denial = spentUp(levels);
  if (denial !== undefined) return { ok: false, denial };
  return inPlace({ ...result, scope: { ...result.scope, remainingBudgetMicrocents: remaining(levels) } });
}
