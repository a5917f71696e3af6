import type { ReadTx, WriteTx } from "@depute/store";
import type { StoredAgent } from "../rules/agent.ts";
import { NO_OUTCOMES } from "../rules/bayesian.ts";
import { unknownTrust } from "../rules/trust.ts";
import { findTrust, type StoredTrust } from "../store/trust.ts";

/** Returns an agent's stored trust or, without evidence, the initial trust. */
export async function findTrustOrInitial(
  tx: ReadTx | WriteTx,
  { record }: StoredAgent,
  id: string,
  counterpart: string,
  now: number,
): Promise<StoredTrust> {
  const storedTrust = await findTrust(tx, id, counterpart);
  return storedTrust ?? { trust: unknownTrust(record.principal !== "", now), bayesian: NO_OUTCOMES };
}
