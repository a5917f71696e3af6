import { existsSync, globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { FAMILIES, fileText } from "../../tools/vectors/families.ts";
import type { VectorCase, VectorFile } from "../../tools/vectors/shared.ts";
import { agentaDigestOperations } from "./platform/agenta-digests.ts";
import type { Operations } from "./platform/answer.ts";
import { aspEnvelopeOperations } from "./platform/asp-envelopes.ts";
import { attestationOperations } from "./platform/attestations.ts";
import { authorityBundleOperations } from "./platform/authority-bundles.ts";
import { canonicalJsonOperations } from "./platform/canonical-json.ts";
import { dsseOperations } from "./platform/dsse.ts";
import { holderProofOperations } from "./platform/holder-proofs.ts";
import { holderSessionOperations } from "./platform/holder-sessions.ts";
import { keyOperations } from "./platform/keys-and-principals.ts";
import { merkleOperations } from "./platform/merkle-proofs.ts";
import { tokenOperations } from "./platform/tokens.ts";
import { transcriptOperations } from "./platform/transcripts.ts";

const PLATFORM: Readonly<Record<string, Operations>> = {
  "canonical-json": canonicalJsonOperations,
  "keys-and-principals": keyOperations,
  tokens: tokenOperations,
  transcripts: transcriptOperations,
  "authority-bundles": authorityBundleOperations,
  "agenta-digests": agentaDigestOperations,
  "holder-proofs": holderProofOperations,
  "holder-sessions": holderSessionOperations,
  "asp-envelopes": aspEnvelopeOperations,
  "merkle-proofs": merkleOperations,
  attestations: attestationOperations,
  dsse: dsseOperations,
};

const read = (name: string) => readFileSync(`vectors/${name}.json`, "utf8");
const casesOf = (name: string) => (JSON.parse(read(name)) as VectorFile).cases;

test("each file has a generator, a page, and a line in the index", () => {
  const files = globSync("vectors/*.json").map((path) => path.slice("vectors/".length, -".json".length));
  expect(files.sort()).toEqual(Object.keys(FAMILIES).sort());
  const index = readFileSync("vectors/README.md", "utf8");
  for (const name of files) {
    expect(existsSync(`vectors/${name}.md`), name).toBe(true);
    expect(index).toContain(`| [${name}.md](${name}.md) | [${name}.json](${name}.json) |`);
  }
});

describe.each(Object.keys(FAMILIES))("%s", (name) => {
  test("the committed file equals the output of `npm run vectors`", () => {
    expect(read(name)).toBe(fileText((FAMILIES[name] as () => VectorFile)()));
  });

  test("names are unique, and a case has either a result or a refusal", () => {
    const cases = casesOf(name);
    expect(new Set(cases.map((one) => one.name)).size).toBe(cases.length);
    for (const one of cases) expect("expected" in one, one.name).toBe(!("refusal" in one));
  });

  test("the platform gives the answer of each case", () => {
    for (const one of casesOf(name)) {
      const operation = PLATFORM[name]?.[one.operation];
      expect(operation?.(one.input, one), one.name).toEqual(answerOf(one));
    }
  });
});

function answerOf({ expected, refusal, fault }: VectorCase) {
  return refusal === undefined ? { expected } : { refusal, ...(fault !== undefined && { fault }) };
}
