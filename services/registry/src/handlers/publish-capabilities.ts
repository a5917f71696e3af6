import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  AgentChangeKind,
  type PublishCapabilitiesRequest,
  PublishCapabilitiesRequestSchema,
  type PublishCapabilitiesResponse,
  PublishCapabilitiesResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { bytesOf, MAX_ANSWER_BYTES, ownOptions } from "@depute/service";
import { findCallersAgent, identify, type RegistryContext, recordChange } from "../context.ts";
import { idempotentCall } from "../idempotency.ts";
import { withHash } from "../rules/levels.ts";
import { readPublication } from "../rules/publication.ts";
import { searchKeys } from "../rules/registration.ts";
import { schemasToCheck } from "../rules/schema-checks.ts";
import { putState } from "../store/agents.ts";
import { publishedBy, replaceCapabilities } from "../store/capabilities.ts";

/** Number of bytes of the response that are reserved for version hashes. */
const ROOM_FOR_HASHES = 32 * 1024;

const SCHEMAS = { request: PublishCapabilitiesRequestSchema, answer: PublishCapabilitiesResponseSchema };

/**
 * Implements AgentService.PublishCapabilities. Calls the verifier between two transactions, because no transaction may
 * wait for another service. So the second transaction repeats the checks of the first.
 */
export async function publishCapabilities(
  registry: RegistryContext,
  request: PublishCapabilitiesRequest,
  context: HandlerContext,
): Promise<PublishCapabilitiesResponse> {
  const identity = await identify(registry, context);
  const { agentId } = request;
  const call = idempotentCall(SCHEMAS, identity.principal, request.requestId, request);
  const before = await registry.store.read(async (tx) => {
    const earlierAnswer = await call.findAnswer(tx);
    if (earlierAnswer !== undefined) return { earlierAnswer };
    await findCallersAgent(tx, identity, agentId, "agent_id");
    return { published: await publishedBy(tx, agentId) };
  });
  if (before.earlierAnswer !== undefined) return before.earlierAnswer;
  checkSize(request);

  const capabilities = readPublication(request.capabilities, sha256Hex);
  const schemas = schemasToCheck(capabilities, before.published);
  await registry.schemas.check(schemas, ownOptions(context, registry.clock));

  return registry.store.write(async (tx) => {
    const earlierAnswer = await call.findAnswer(tx);
    if (earlierAnswer !== undefined) return earlierAnswer;
    const agent = await findCallersAgent(tx, identity, agentId, "agent_id");
    const now = registry.clock.now();
    await replaceCapabilities(tx, agentId, capabilities, searchKeys(agent.record));
    const capabilityIds = capabilities.map(({ message }) => message.id);
    await putState(tx, registry, { ...agent, capabilityIds, updateTime: now });
    const answer = create(PublishCapabilitiesResponseSchema, {
      capabilities: capabilities.map(({ message, digest }) => withHash(message, digest, registry.hashLength)),
    });
    await call.storeAnswer(tx, answer, now);
    await recordChange(registry, tx, AgentChangeKind.CAPABILITIES, agent.record);
    return answer;
  });
}

/**
 * Requires that the response fits one message. The response repeats the whole request.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
function checkSize(request: PublishCapabilitiesRequest): void {
  const max = MAX_ANSWER_BYTES - ROOM_FOR_HASHES;
  if (bytesOf(PublishCapabilitiesRequestSchema, request) <= max) return;
  throw new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the capabilities of an agent have at most ${max} bytes together`,
    { metadata: { limit: "capabilities.bytes", max: String(max) } },
  );
}
