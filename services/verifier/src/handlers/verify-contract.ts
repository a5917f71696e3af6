import type { HandlerContext } from "@connectrpc/connect";
import {
  ContractStep,
  type VerifyContractRequest,
} from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { CanonicalError, canonicalJson, DeputeError, ErrorReason, invalid, parseTime } from "@depute/core";
import { verifyObject } from "@depute/dct";
import type { CheckCaller } from "../checker/checker.ts";
import { toDocument, toMessage } from "../documents.ts";
import { onEventLoop } from "../on-event-loop.ts";
import { checkCallerOf } from "../output-verification.ts";
import { validateContract } from "../rules/contract-validation.ts";
import type { TaskContract } from "../rules/documents.ts";
import { getContract } from "../store/contracts.ts";
import type { Verifier } from "../verifier.ts";

/** Verifies a contract's signature and its content. Checks the content even if the signature is invalid. */
export async function verifyContract(
  verifier: Verifier,
  { subject }: VerifyContractRequest,
  context: HandlerContext,
) {
  const { authority, contracts, engine, clock } = verifier;
  const identity = await authority.identify(context);
  const contract =
    subject.case === "contract"
      ? toDocument("contract", subject.value)
      : (await contracts.get(subject.value ?? "")).contract;
  const verified = onEventLoop(() => verifyObject(engine, "contract", contract));
  const by = checkCallerOf({ identity, signal: context.signal });
  const faults: [ContractStep, string | undefined][] = [
    [ContractStep.SIGNATURE, verified.ok ? undefined : verified.refusal.detail],
    [ContractStep.CONTENT, await contentFault(verifier, contract, by)],
  ];
  const deadline = parseTime(contract.constraints.deadline);
  return {
    valid: faults.every(([, fault]) => fault === undefined),
    findings: faults.map(([step, fault]) => ({ step, passed: fault === undefined, details: fault ?? "" })),
    recorded: subject.case === "contractId" || (await isRecorded(verifier, contract)),
    expired: deadline !== undefined && deadline < clock.now(),
    contract: toMessage("contract", contract),
  };
}

/**
 * Returns the reason why the service would refuse to create a contract with this content; undefined if it would not.
 * Throws all other errors, such as that of an overloaded service.
 */
async function contentFault(
  { checker, clock, names }: Verifier,
  contract: TaskContract,
  by: CheckCaller,
): Promise<string | undefined> {
  try {
    await checker.compile(validateContract(contract, clock.now(), names), by);
    return undefined;
  } catch (error) {
    if (!(error instanceof DeputeError) || !FAULTS.has(error.reason)) throw error;
    return error.message;
  }
}

const FAULTS: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.INVALID_REQUEST,
  ErrorReason.SCHEMA_INVALID,
  ErrorReason.UNKNOWN_CHECK,
  ErrorReason.UNSUPPORTED_PATTERN,
  ErrorReason.CHECK_TIMEOUT,
]);

async function isRecorded({ store }: Verifier, contract: TaskContract): Promise<boolean> {
  const storedContract = await store.read((tx) => getContract(tx, contract.id));
  try {
    return storedContract?.document === canonicalJson(contract);
  } catch (error) {
    if (error instanceof CanonicalError) throw invalid("contract", error.message);
    throw error;
  }
}
