import { monotonicMs, nextTurn } from "@depute/core";

/** How long other work may wait for this, in milliseconds; what comes between two looks at the clock is added to it. */
const TURN_MS = 2;

/** Lets other work go first whenever this has taken its turn. */
export type Breath = () => Promise<void>;

/** One for all that a request does, or each of its parts would take a turn without a look at the others. */
export function createBreath(): Breath {
  let until = monotonicMs() + TURN_MS;
  return async () => {
    if (monotonicMs() < until) return;
    await nextTurn();
    until = monotonicMs() + TURN_MS;
  };
}
