import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { DeputeClients } from "@depute/client";
import { RevocationEntrySchema } from "@depute/contracts/delegateos/v0/revocation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { type CryptoEngine, createRevocation, type Keypair } from "@depute/dct";
import { message } from "./documents.ts";

/** A token, and the id of its last block, with which the token can be revoked. */
export interface Granted {
  token: SerializedDCT;
  revocationId: string;
}

/** Lets the platform's root grant the delegator a token for this contract only. */
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
    lifetime: durationFromMs(600_000),
  });
  if (token === undefined) throw new Error("no token was minted");
  return { token, revocationId };
}

/** Attenuates the delegator's token for the worker: only the classification, for half of the budget. */
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
  // The service returns the bytes to sign and receives the signature, so the key never leaves this process.
  const signature = engine.sign(digest, delegator.privateKey);
  const narrowed = await clients.tokens.attenuateToken({ token, attenuation, signature });
  if (narrowed.token === undefined) throw new Error("the token was not narrowed");
  return { token: narrowed.token, revocationId: narrowed.revocationId };
}

/** Revokes a block, and so every token that contains the block. */
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
