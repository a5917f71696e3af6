import { createClient } from "@connectrpc/connect";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { createProof, generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { createGrpcJsTransport } from "@depute/grpc-js";

const EVERY_MS = 200;
/** Every tenth token is revoked, and then verified again, which is a denial. */
const REVOKED_EVERY = 10;
const RESERVED_MICROCENTS = 1_000n;
const CHARGED_MICROCENTS = 700n;
/** Milliseconds between a reservation and its settlement. */
const HELD_MS = 2_000;
const CALL = { htm: "POST", htu: "https://depute.example/depute.tasks.v1.TaskService/CreateTask" };

/**
 * Loads the tokens service: five tokens a second, each minted, verified with a proof, and used for one reservation.
 *
 * @param address host and port of the platform
 * @param onError receives the error of a failed call
 */
export function startAuthorityLoad(address: string, onError: (error: unknown) => void): void {
  const transport = createGrpcJsTransport(address);
  const clients = {
    tokens: createClient(TokenService, transport),
    spend: createClient(SpendService, transport),
    revocations: createClient(RevocationService, transport),
  };
  const holder = generateKeypair(engine);
  let count = 0;
  setInterval(() => void useToken(count++).catch(onError), EVERY_MS);

  async function useToken(number: number): Promise<void> {
    const { token, revocationId } = await clients.tokens.mintToken({
      requestId: `${process.pid} ${number} ${Date.now()}`,
      delegatee: holder.principal.id,
      capabilities: [{ namespace: "docs", action: "read", resource: "/**" }],
      contractId: "ct_a1b2c3d4e5f6",
      maxChainDepth: 2,
      maxBudgetMicrocents: 1_000_000n,
    });
    const text = token?.token ?? "";
    await verify(text);
    const { reservation } = await clients.spend.reserveSpend({
      requestId: `spend ${process.pid} ${number} ${Date.now()}`,
      token: { token: text, format: "delegateos-sjt-v1" },
      amountMicrocents: RESERVED_MICROCENTS,
      lifetime: { seconds: 60n },
    });
    setTimeout(() => {
      const settlement = { reservationId: reservation?.id ?? "", amountMicrocents: CHARGED_MICROCENTS };
      clients.spend.commitSpend(settlement).catch(onError);
    }, HELD_MS);
    if (number % REVOKED_EVERY !== 0) return;
    await clients.revocations.revokeMintedToken({ revocationId, scope: RevocationScope.CHAIN });
    await verify(text);
  }

  async function verify(token: string): Promise<void> {
    await clients.tokens.verifyToken({
      token: { token, format: "delegateos-sjt-v1" },
      requested: { namespace: "docs", action: "read", resource: "/a" },
      proof: { method: CALL.htm, target: CALL.htu, jwt: createProof(engine, holder, { ...CALL, token }) },
    });
  }
}
