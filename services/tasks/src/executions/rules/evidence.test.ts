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
  ["no evidence is required", [], [], undefined],
  ["required evidence with a matching digest is sufficient", [LOGS], [[LOGS, MATCHES]], undefined],
  ["required evidence at another host is accepted unchecked", [LOGS], [[LOGS, NOT_CHECKED]], undefined],
  ["missing evidence is refused", [LOGS], [], "REQUIRED_EVIDENCE_MISSING"],
  ["evidence of another kind is refused", [LOGS], [[CITATIONS, MATCHES]], "REQUIRED_EVIDENCE_MISSING"],
  ["evidence without content is refused", [LOGS], [[LOGS, MISSING]], "REQUIRED_EVIDENCE_MISSING"],
  ["required evidence with a wrong digest is refused", [LOGS], [[LOGS, DIFFERS]], "DIGEST_MISMATCH"],
  [
    "further evidence with a wrong digest is refused",
    [LOGS],
    [
      [LOGS, MATCHES],
      [CITATIONS, DIFFERS],
    ],
    "DIGEST_MISMATCH",
  ],
  [
    "one of two artifacts of a kind is sufficient",
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
