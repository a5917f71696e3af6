import { isSubset, matches, parsePattern, parseResource } from "@depute/dct";
import type { VectorCase, VectorFile } from "./shared.ts";
import { chainVectors } from "./token-chain.ts";
import { malformedTokens } from "./token-forms.ts";
import { attenuationRefusals, verifications } from "./token-verifications.ts";

export function tokenVectors(): VectorFile {
  return {
    specification: "tokens.md",
    cases: [
      ...chainVectors(),
      ...attenuationRefusals(),
      ...verifications(),
      ...malformedTokens(),
      ...PATTERNS.map(matchVector),
      ...SUBSETS.map(subsetVector),
    ],
  };
}

type Row = readonly [namespace: string, one: string, other: string];

/** Each row has a namespace, a pattern and a resource. */
const PATTERNS: readonly Row[] = [
  ["docs", "*", "/a/b"],
  ["docs", "**", "a"],
  ["docs", "*", "*"],
  ["docs", "/a/**", "*"],
  ["docs", "/a/*", "/a/b"],
  ["docs", "/a/*", "/a/b/c"],
  ["docs", "/a/*", "/a"],
  ["docs", "/a/**", "/a"],
  ["docs", "/a/**", "/a/b/c"],
  ["docs", "/a/**/z", "/a/z"],
  ["docs", "/a/**/z", "/a/b/c/z"],
  ["docs", "/a/**/z", "/a/b/c"],
  ["docs", "/a/b", "a/b"],
  ["docs", "/a/b", "/a/b/"],
  ["docs", "/A", "/a"],
  ["docs", "/a%20b", "/a b"],
  ["docs", "/", "/"],
  ["docs", "/**", "/"],
  ["web", "https://example.com/**", "https://example.com/a/b"],
  ["web", "https://example.com/**", "https://example.com.evil.example/a"],
  ["web", "https://example.com/**", "https://example.com"],
  ["web", "https://example.com/**", "http://example.com/a"],
  ["acme:store", "https://example.com/*", "https://example.com/a"],
  ["docs", "/a*", "/ab"],
  ["docs", "/a/../b", "/b"],
  ["docs", "/a/**", "/a/../b"],
  ["docs", "/a/**", "/a//b"],
  ["docs", "/a/**", "/a/./b"],
  ["docs", "/a/**", "/a/%2e%2E/b"],
  ["docs", "/a/**", "/a/b%2Fc"],
  ["docs", "/a/**", "/a/b\\c"],
  ["docs", "/a/**", "/a/b\nc"],
  ["docs", "/a/**", "/a/*"],
  ["docs", "/a/**", ""],
  ["docs", "/a/**", "/a/b "],
  ["docs", "/a/**", `/a/${"b".repeat(1022)}`],
  ["web", "https:///a", "https:///a"],
];

function matchVector([namespace, pattern, resource]: Row): VectorCase {
  const [one, other] = [parsePattern(pattern, namespace), parseResource(resource, namespace)];
  const row = {
    name: `match ${namespace} ${pattern} ${JSON.stringify(resource.slice(0, 40))}`,
    operation: "match",
    input: { namespace, pattern, resource },
  };
  if ("problem" in one || "problem" in other) return { ...row, refusal: "invalid_resource" };
  return { ...row, expected: { matches: matches(one, other) } };
}

/** Rows of a namespace, the pattern of the upper block and the pattern of the lower block. */
const SUBSETS: readonly Row[] = [
  ["docs", "*", "/a/**"],
  ["docs", "/a/**", "*"],
  ["docs", "/a/**", "/a/**"],
  ["docs", "/a/**", "/a"],
  ["docs", "/a/*", "/a/**"],
  ["docs", "/a/**", "/a/*/c"],
  ["docs", "/a/*/c", "/a/b/c"],
  ["docs", "/a/**/z", "/a/b/**/z"],
  ["docs", "/a/b/**/z", "/a/**/z"],
  ["docs", "/**/b/**", "/a/b/*"],
  ["docs", "/**/b/**", "/*/b"],
  ["docs", "/**/b/**", "/a/*"],
  ["docs", "/*/**", "/**/*"],
  ["docs", "/**/*", "/*/**"],
  ["docs", "/*/*/**", "/**/*"],
  ["docs", "/**", "/*"],
  ["docs", "/a/**", "/ab"],
  ["docs", "/a/**", "a/b"],
  ["docs", "/a/**", "/a/b/"],
  ["docs", "/**/a/*", "/**/a/a"],
  ["web", "https://example.com/**", "https://example.com/a/*"],
  ["web", "https://*/**", "https://example.com/a"],
];

function subsetVector([namespace, parent, child]: Row): VectorCase {
  const capability = (resource: string) => ({ namespace, action: "read", resource });
  return {
    name: `subset ${namespace} ${child} of ${parent}`,
    operation: "subset",
    input: { parent: capability(parent), child: capability(child) },
    expected: { isSubset: isSubset(capability(child), capability(parent)) },
  };
}
