/** The DelegateOS documents that this service stores, in their signed JSON form. */
export type { Attestation, AttestationResult, TaskContract, VerificationSpec } from "@depute/dct";
