import { setImmediate as nextTurn } from "node:timers/promises";

/** How long other work may wait for this, in milliseconds; what comes between two looks at the clock is added to it. */
const TURN_MS = 2;

/** Lets other work go first whenever this has taken its turn. */
export type Breath = () => Promise<void>;

/** One for all that a request does, or each of its parts would take a turn without a look at the others. */
export function createBreath(): Breath {
  let until = performance.now() + TURN_MS;
  return async () => {
    if (performance.now() < until) return;
    await nextTurn();
    until = performance.now() + TURN_MS;
  };
}
