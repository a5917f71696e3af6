/**
 * An agent of a proven organization. The agent verifies the receipt in its arguments: `node auditor.ts URL
 * RECEIPT TEXT`.
 */
import { call, post, register, say } from "./http.ts";

const [url = "", handed = "{}", text = ""] = process.argv.slice(2);
const receipt = JSON.parse(handed);
const principal = await register(url, "auditor", "org:audit");
// On an open loopback a caller without credentials has the operator's permissions, so the auditor may record
// this proof itself.
const proof = { requestId: crypto.randomUUID(), organization: "org:audit", principal };
await call(url, "registry.v1.OrganizationService/CreateOrganizationProof", proof);

const isRight = receipt.result.words === text.split(/\s+/).length;
const { status, body } = await post(`${url}/agenta/verification_results`, {
  protocol_version: "agenta.delegation.v0",
  message_type: "verification_result",
  verification_id: `verification-${crypto.randomUUID()}`,
  request_id: receipt.request_id,
  receipt_id: receipt.receipt_id,
  verifier_agent: { agent_id: "auditor", organization_id: "org:audit" },
  decision: isRight ? "pass" : "fail",
  score: isRight ? 1 : 0,
  checks: [
    { check_id: "count", description: "The number is that of the words.", status: isRight ? "pass" : "fail" },
  ],
  verified_at: new Date().toISOString(),
});
say({ status, result: body });
