/** The documents of DelegateOS that this service keeps, in the JSON form that is signed. */
export type { Attestation, AttestationResult, TaskContract, VerificationSpec } from "@depute/dct";
