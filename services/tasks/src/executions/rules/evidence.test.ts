import { create } from "@bufbuild/protobuf";
import { ArtifactType } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import { ArtifactSchema } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ArtifactVerdict } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { expect, test } from "vitest";
import { evidenceFault } from "./evidence.ts";

const { LOGS, CITATIONS } = ArtifactType;
const { MATCHES, DIFFERS, MISSING, NOT_CHECKED } = ArtifactVerdict;
const artifact = (artifactType: ArtifactType) => create(ArtifactSchema, { artifactType, uri: "data:,x" });

test.each<[string, ArtifactType[], [ArtifactType, ArtifactVerdict][], string | undefined]>([
  ["nothing is required", [], [], undefined],
  ["what is required is there", [LOGS], [[LOGS, MATCHES]], undefined],
  ["what lies elsewhere is taken at its word", [LOGS], [[LOGS, NOT_CHECKED]], undefined],
  ["what is required is not there", [LOGS], [], "REQUIRED_EVIDENCE_MISSING"],
  ["only another kind is there", [LOGS], [[CITATIONS, MATCHES]], "REQUIRED_EVIDENCE_MISSING"],
  ["there are no bytes", [LOGS], [[LOGS, MISSING]], "REQUIRED_EVIDENCE_MISSING"],
  ["a digest differs", [LOGS], [[LOGS, DIFFERS]], "DIGEST_MISMATCH"],
  [
    "a digest of what nobody required differs",
    [LOGS],
    [
      [LOGS, MATCHES],
      [CITATIONS, DIFFERS],
    ],
    "DIGEST_MISMATCH",
  ],
  [
    "one of two of a kind is there",
    [LOGS],
    [
      [LOGS, MISSING],
      [LOGS, MATCHES],
    ],
    undefined,
  ],
])("%s", (_, required, pieces, reason) => {
  const artifacts = pieces.map(([type]) => artifact(type));
  const verdicts = pieces.map(([, verdict]) => verdict);
  expect(evidenceFault(required, artifacts, verdicts)?.reason).toBe(reason);
});
