import type { DenialReason } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { VerifyProofResponse } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { Platform } from "./platform.ts";

type Answer = Awaited<ReturnType<Platform["tokens"]["verifyToken"]>>;

type Decision = Pick<Answer, "result"> | Pick<VerifyProofResponse, "result">;

/** Returns the denial in a response; throws if the response contains no denial. */
export async function denialOf(answer: Promise<Decision>): Promise<DenialReason> {
  const { result } = await answer;
  if (result.case !== "denial") throw new Error("it was allowed");
  return result.value;
}

export const typeOf = async (answer: Promise<Decision>) => (await denialOf(answer)).type;
export const isAllowed = async (answer: Promise<Answer>) => (await answer).result.case === "scope";
