import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { promisify } from "node:util";

export type Json = Record<string, unknown>;

/** Keys of agents. The secret of each caller equals its principal. */
export const ALICE = `${"A".repeat(42)}A`;
export const BOB = `${"B".repeat(42)}E`;

/** The callers of the tests. Callers without `roles` have the default roles. */
const CALLERS: readonly { readonly principal: string; readonly roles?: readonly string[] }[] = [
  { principal: ALICE },
  { principal: BOB },
  { principal: "user", roles: ["user"] },
  { principal: "orchestrator", roles: ["orchestrator"] },
  { principal: "reviewer", roles: ["reviewer"] },
  { principal: "auditor", roles: ["auditor"] },
  { principal: "nobody", roles: [] },
  { principal: "operator", roles: ["operator"] },
  { principal: "both", roles: ["operator", "user"] },
  // The settings name these three.
  { principal: "truster" },
  { principal: "authorizer" },
  { principal: "bounder" },
];

/** Flags of a platform with these callers. */
export function flagsOf(credentialsFile: string): string[] {
  const entries = CALLERS.map(({ principal, roles }) => ({
    principal,
    sha256: createHash("sha256").update(principal).digest("hex"),
    ...(roles && { roles }),
  }));
  writeFileSync(credentialsFile, JSON.stringify(entries), { mode: 0o600 });
  return [
    ...["--auth", "required", "--credentials-file", credentialsFile, "--asp-authorities", "granted"],
    ...["--trust-operators", "truster", "--asp-authority-operators", "authorizer"],
    ...["--bounds-operators", "bounder"],
  ];
}

const run = promisify(execFile);

/** Calls an RPC as JSON with curl, which shares no code with the platform. */
export async function curl(url: string, caller: string, method: string, request: Json): Promise<Json> {
  const { stdout } = await run("curl", [
    ...["--silent", "--max-time", "20", `${url}/depute.${method}`],
    ...["--header", "content-type: application/json", "--header", `authorization: Bearer ${caller}`],
    ...["--data", JSON.stringify(request)],
  ]);
  return JSON.parse(stdout) as Json;
}

/** The reason of a refusal; undefined for an answer. */
export function reasonOf({ details }: Json): string | undefined {
  const [first] = (details ?? []) as { debug?: { reason?: string } }[];
  return first?.debug?.reason;
}

export const ORGANIZATION = (organization = "acme") => ({ organizationProof: { organization } });
export const AUTHORITY = (authority = "acme.example") => ({ authorityGrant: { authority } });
export const MANIFEST = (version: string, ...allowed: string[]) => ({
  manifest: { agentId: "clerk", version, manifest: manifestOf(...allowed) },
});

/** A manifest of the agent `clerk` that may delegate to these agents. */
export function manifestOf(...allowed: string[]): Json {
  return {
    id: "clerk",
    systemPrompt: "You are a clerk.",
    allowedAgents: allowed,
    delegateRules: Object.fromEntries(allowed.map((id) => [id, { whenToDelegate: "always" }])),
  };
}

export const newRequest = () => randomUUID();
