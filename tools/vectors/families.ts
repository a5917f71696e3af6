import { agentaDigestVectors } from "./agenta-digests.ts";
import { aspEnvelopeVectors } from "./asp-envelopes.ts";
import { attestationVectors } from "./attestations.ts";
import { authorityBundleVectors } from "./authority-bundles.ts";
import { canonicalJsonVectors } from "./canonical-json.ts";
import { dsseVectors } from "./dsse.ts";
import { holderProofVectors } from "./holder-proofs.ts";
import { holderSessionVectors } from "./holder-sessions.ts";
import { keyVectors } from "./keys-and-principals.ts";
import { merkleVectors } from "./merkle-proofs.ts";
import type { VectorFile } from "./shared.ts";
import { tokenVectors } from "./tokens.ts";
import { transcriptVectors } from "./transcripts.ts";

/** The generators of the vector files, by file name. */
export const FAMILIES: Readonly<Record<string, () => VectorFile>> = {
  "canonical-json": canonicalJsonVectors,
  "keys-and-principals": keyVectors,
  tokens: tokenVectors,
  "holder-proofs": holderProofVectors,
  "holder-sessions": holderSessionVectors,
  "asp-envelopes": aspEnvelopeVectors,
  "merkle-proofs": merkleVectors,
  attestations: attestationVectors,
  dsse: dsseVectors,
  transcripts: transcriptVectors,
  "authority-bundles": authorityBundleVectors,
  "agenta-digests": agentaDigestVectors,
};

/** Returns the text of a vector file. */
export function fileText(file: VectorFile): string {
  return `${JSON.stringify(file, undefined, 2)}\n`;
}
