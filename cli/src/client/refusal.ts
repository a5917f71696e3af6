import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { CommandError, EXIT } from "../exit-codes.ts";
import { readableTlsError, tlsAdvice } from "./tls.ts";

const CODES: Readonly<Partial<Record<Code, readonly [exitCode: number, advice: string]>>> = {
  [Code.InvalidArgument]: [EXIT.usage, "correct the request"],
  [Code.OutOfRange]: [EXIT.usage, "correct the request"],
  [Code.NotFound]: [EXIT.notFound, "check the id; objects of others are not visible"],
  [Code.Unauthenticated]: [EXIT.denied, "set --key-file or --secret-file, or select another context"],
  [Code.PermissionDenied]: [EXIT.denied, "use credentials with this authority"],
  [Code.Unavailable]: [EXIT.unreachable, "check that the platform runs, and --server"],
  [Code.DeadlineExceeded]: [EXIT.unreachable, "try again, or set a longer --timeout"],
  [Code.FailedPrecondition]: [EXIT.refused, "check the object's present state"],
  [Code.AlreadyExists]: [EXIT.refused, "choose another id"],
  [Code.Aborted]: [EXIT.refused, "try again"],
  [Code.ResourceExhausted]: [EXIT.refused, "try again later, or raise the limit"],
  [Code.Unimplemented]: [EXIT.failed, "update the platform, or check --server"],
  [Code.Canceled]: [130, "run the command again"],
};

/** Converts an error of the platform to an error that states the fault and the remedy in one sentence. */
export function refusalOf(error: Error): CommandError {
  const refusal = ConnectError.from(error);
  const advised = tlsAdvice(error);
  if (advised !== undefined)
    return new CommandError(
      `${readableTlsError(refusal.rawMessage).split(";")[0]}; ${advised}`,
      EXIT.unreachable,
    );
  const [exitCode, advice] = CODES[refusal.code] ?? [EXIT.failed, "see the log of the platform"];
  // Most messages of the platform state the remedy after a semicolon.
  if (refusal.rawMessage.includes(";")) return new CommandError(refusal.rawMessage, exitCode);
  const fields = refusal
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) => fieldViolations)
    .map(({ field, description }) => `${field}: ${description}`)
    .filter((each) => !refusal.rawMessage.includes(each));
  const problem = [refusal.rawMessage, ...fields].join("; ").replace(/[.\s]+$/, "");
  return new CommandError(`${problem}; ${advice}`, exitCode);
}
