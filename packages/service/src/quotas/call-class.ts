import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";

/** The classes of calls. Each class has a separate quota. */
export const CALL_CLASSES = ["read", "write", "stream", "mint", "verification"] as const;
export type CallClass = (typeof CALL_CLASSES)[number];

/** The methods of the class `mint`, which make tokens. */
const MINTS = new Set(
  ["MintToken", "ExchangeToken", "ProjectToken", "AttenuateToken"]
    .map((name) => `depute.tokens.v1.TokenService/${name}`)
    .concat(["MintWithKey", "AttenuateWithKey"].map((name) => `depute.tokens.v1.KeyService/${name}`)),
);
/** The methods of the class `verification`, which run checks or verify signatures. */
const VERIFICATIONS = new Set(
  ["VerifyToken", "VerifyProof"]
    .map((name) => `depute.tokens.v1.TokenService/${name}`)
    .concat(
      ["CheckOutput", "CheckSchema"].map((name) => `depute.verifier.v1.VerificationService/${name}`),
      ["VerifyAttestation", "VerifyAttestationTree", "AttestOutput"].map(
        (name) => `depute.verifier.v1.AttestationService/${name}`,
      ),
      [
        "depute.verifier.v1.ResultService/CompleteDelegation",
        "depute.verifier.v1.ContractService/VerifyContract",
      ],
    ),
);

/** Returns the class of a method's calls. */
export function classOf({ parent, name, methodKind, idempotency }: DescMethod): CallClass {
  if (methodKind !== "unary") return "stream";
  const full = `${parent.typeName}/${name}`;
  if (MINTS.has(full)) return "mint";
  if (VERIFICATIONS.has(full)) return "verification";
  return idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ? "read" : "write";
}
