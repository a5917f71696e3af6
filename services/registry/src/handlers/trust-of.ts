import type { ReadTx, WriteTx } from "@depute/store";
import type { StoredAgent } from "../rules/agent.ts";
import { NO_OUTCOMES } from "../rules/bayesian.ts";
import { unknownTrust } from "../rules/trust.ts";
import { findTrust, type StoredTrust } from "../store/trust.ts";

/** What is summed up of an agent, or what one without evidence begins with. */
export async function trustOf(
  tx: ReadTx | WriteTx,
  { record }: StoredAgent,
  id: string,
  counterpart: string,
  now: number,
): Promise<StoredTrust> {
  const known = await findTrust(tx, id, counterpart);
  return known ?? { trust: unknownTrust(record.principal !== "", now), bayesian: NO_OUTCOMES };
}
