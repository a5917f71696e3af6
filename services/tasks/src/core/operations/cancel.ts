import type { WriteTx } from "@depute/store";
import type { Engine } from "../engine/engine.ts";
import { cancelIfOpen, cancelNow } from "../rules/cancel.ts";

/** Implements `TaskEngine.cancel`. */
export async function cancel(
  tx: WriteTx,
  engine: Engine,
  taskId: string,
  reason: string,
  ifOpen: boolean,
): Promise<void> {
  const step = ifOpen ? cancelIfOpen : cancelNow;
  await engine.changeWithin(tx, taskId, (before, nowMs) => step(before, reason, nowMs));
}
