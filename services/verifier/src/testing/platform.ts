import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { ReviewService } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { WitnessService } from "@depute/contracts/depute/verifier/v1/witness_service_pb";
import { startTestHost, as as withSecret } from "@depute/service/testing";
import { toMessage } from "../documents.ts";
import { verifier } from "../index.ts";
import type { TaskContract } from "../rules/documents.ts";
import { type ContractParts, delegator, signedContract, worker } from "./contracts.ts";
import type { FakeRegistry } from "./fake-registry.ts";
import type { FakeTokens } from "./fake-tokens.ts";

export { refusal } from "@depute/service/testing";

/**
 * Starts a verifier service on a real socket, with files in a temporary folder.
 *
 * @param tokens the fake tokens service; absent for none
 * @param registry the fake registry; absent for none
 */
export async function startPlatform(
  args: readonly string[] = [],
  tokens?: FakeTokens,
  registry?: FakeRegistry,
  commonArgs: readonly string[] = [],
) {
  const host = await startTestHost({
    module: verifier,
    args,
    commonArgs,
    fakes: [tokens, registry].flatMap((fake) => fake?.module ?? []),
    principals: [delegator, worker].map(({ principal }) => principal.id),
  });

  return {
    clock: host.clock,
    get transport() {
      return host.transport;
    },
    /** Creates a contract that the delegator has signed. */
    async agree(parts: ContractParts = {}): Promise<TaskContract> {
      const contract = signedContract(parts);
      await host.client(ContractService).createContract({ contract: message(contract) });
      return contract;
    },
    get contracts() {
      return host.client(ContractService);
    },
    get verification() {
      return host.client(VerificationService);
    },
    get attestations() {
      return host.client(AttestationService);
    },
    get results() {
      return host.client(ResultService);
    },
    get reviews() {
      return host.client(ReviewService);
    },
    get log() {
      return host.client(LogService);
    },
    get witness() {
      return host.client(WitnessService);
    },
    restart: host.restart,
    stop: host.stop,
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

/** Returns the call options with the credentials of a caller. */
export function asCaller({ principal }: { principal: { id: string } }) {
  return withSecret(principal.id);
}

export function message(contract: TaskContract) {
  return toMessage("contract", contract);
}

export function value(json: JsonValue): Value {
  return fromJson(ValueSchema, json);
}
