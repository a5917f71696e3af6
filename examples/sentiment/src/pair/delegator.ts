/** Delegates the scoring of 500 texts under an attenuated token. Argument: complete, cancel or revoke; see examples/README.md. */
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { connect, narrowToken, plain, reasonOf } from "@depute/client";
import { canonicalJson } from "@depute/core";
import { signContract } from "./contract.ts";
import { keyOf } from "./key-file.ts";

const { DEPUTE_URL: url = "http://127.0.0.1:8080", DEPUTE_AGENT: agentId = "sentiment" } = process.env;
const { DEPUTE_KEY: file = "delegator.key", DEPUTE_SECRET: secret } = process.env;
const [mode = "complete"] = process.argv.slice(2);
const key = keyOf(file);
const [issuer, depute] = [connect(url, secret === undefined ? {} : { secret }), connect(url, { key })];

const schema = { type: "object", properties: { count: { const: 500 } }, required: ["count"] };
const contract = signContract(key, "500 texts", schema, 1_000_000);
await depute.services.contracts.createContract({ contract });

const granted = await issuer.mint({
  delegatee: key.principal.id,
  capabilities: [
    { namespace: "depute:tasks", action: "delegate", resource: `${agentId}/*` },
    { namespace: "llm", action: "classify", resource: "**" },
  ],
  contractId: contract.id,
  maxBudgetMicrocents: 1_000_000,
});
// The holder attenuates the token offline. Only the worker's principal comes from the platform.
const { agent } = await depute.services.agents.getAgent({ agentId });
const { token: workerToken } = narrowToken(granted.token, key, {
  delegatee: agent?.principal ?? "",
  capabilities: [{ namespace: "llm", action: "classify", resource: "texts/readme/**" }],
  maxBudgetMicrocents: 500_000,
});
const holder = connect(url, { key, token: granted.token });
const texts = ["A wonderful, useful tool.", "This is terrible.", "It takes two arguments.", "Broken."];
const create = () =>
  holder.delegate({
    ...{ agentId, capabilityId: "sentiment", contractId: contract.id, workerToken },
    input: { texts: Array.from({ length: 125 }, () => texts).flat() },
    limits: { heartbeat: durationFromMs(5_000) },
    retry: { maxAttempts: 3, initialBackoff: durationFromMs(100) },
  });

const task = await create();
console.log("task", task.id);
let ended = "";
for await (const { sequence, type, data, status } of task.events()) {
  ended = status.toLowerCase();
  if (type !== "progress") console.log("event", sequence, type);
  else {
    console.log("event", sequence, type, `${data.processed}/${data.total}`);
    if (data.processed === 250 && mode === "cancel") await task.cancel();
    if (data.processed === 250 && mode === "revoke") await depute.revoke(granted, key);
  }
}
const { output, verification, attestationId } = plain(await task.read());
console.log("ended", ended);
if (ended === "completed") {
  const subject = { case: "attestationId", value: attestationId } as const;
  const { valid } = await depute.services.attestations.verifyAttestation({ subject });
  console.log("result", canonicalJson(output?.full ?? null));
  console.log("checked", verification?.passed ? "passed" : "failed");
  console.log("attestation", valid ? "valid" : "invalid");
  console.log("revoked", await depute.revoke(granted, key));
}
if (mode !== "cancel") await create().catch((error) => console.log("refused", reasonOf(error)));
for (const each of [holder, depute, issuer]) each.close();
