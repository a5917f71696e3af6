import type { DeputeClients } from "@depute/client";
import { RevocationEntrySchema } from "@depute/contracts/delegateos/v0/revocation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { type CryptoEngine, createRevocation, type Keypair } from "@depute/dct";
import { message } from "./documents.ts";

/** A token and the name of its last block, to take it back by. */
export interface Granted {
  token: SerializedDCT;
  revocationId: string;
}

/** The platform's root grants the delegator what the work needs, for this contract only. */
export async function mintFor(
  clients: DeputeClients,
  delegator: string,
  agentId: string,
  contractId: string,
): Promise<Granted> {
  const { token, revocationId } = await clients.tokens.mintToken({
    requestId: crypto.randomUUID(),
    delegatee: delegator,
    capabilities: [
      { namespace: "depute:tasks", action: "delegate", resource: `${agentId}/*` },
      { namespace: "llm", action: "classify", resource: "texts/**" },
    ],
    contractId,
    maxChainDepth: 2,
    maxBudgetMicrocents: 1_000_000n,
    lifetimeSeconds: 600,
  });
  if (token === undefined) throw new Error("no token was minted");
  return { token, revocationId };
}

/** The delegator hands a narrower part on to the worker: classify, and nothing else, for half of the money. */
export async function narrowFor(
  clients: DeputeClients,
  engine: CryptoEngine,
  delegator: Keypair,
  worker: string,
  { token }: Granted,
): Promise<Granted> {
  const { attenuation, digest } = await clients.tokens.prepareAttenuation({
    token,
    attenuation: {
      delegatee: worker,
      allowedCapabilities: {
        capabilities: [{ namespace: "llm", action: "classify", resource: "texts/readme/**" }],
      },
      maxBudgetMicrocents: 500_000n,
    },
  });
  if (attenuation === undefined) throw new Error("no block was prepared");
  // The key never leaves this process: the service says what to sign, and gets the signature.
  const signature = engine.sign(digest, delegator.privateKey);
  const narrowed = await clients.tokens.attenuateToken({ token, attenuation, signature });
  if (narrowed.token === undefined) throw new Error("the token was not narrowed");
  return { token: narrowed.token, revocationId: narrowed.revocationId };
}

/** Takes back a block, and with it every token that contains it. */
export async function takeBack(
  clients: DeputeClients,
  engine: CryptoEngine,
  revoker: Keypair,
  { token, revocationId }: Granted,
): Promise<bigint> {
  const entry = message(RevocationEntrySchema, createRevocation(engine, revocationId, "chain", revoker));
  const { revocation } = await clients.revocations.revokeToken({ entry, token });
  return revocation?.sequence ?? 0n;
}
