import { create, type JsonValue } from "@bufbuild/protobuf";
import { AgentCardSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { encode } from "@depute/wire";

/** The version of NEKTE, as its library says it on the wire. */
export const NEKTE_VERSION = "0.2.0";

/** The name under which the platform as a whole speaks NEKTE. */
export const PLATFORM_AGENT = "depute";

const INSTRUCTIONS =
  "Discover at level 0 first, then ask for level 2 of the one capability that you need. Keep its hash and send it " +
  "with every invocation. State a budget in tokens: results step down from full to compact to minimal.";

/** What the card of an agent, or of the platform, is made of. */
export interface CardParts {
  readonly agent: string;
  /** The URL that calls are posted to. */
  readonly endpoint: string;
  readonly caps: readonly string[];
  readonly auth: "bearer" | "none";
}

/** The agent card, as it stands at `.well-known/nekte.json` (NEKTE library). */
export function agentCard({ agent, endpoint, caps, auth }: CardParts): JsonValue {
  const card = {
    nekte: NEKTE_VERSION,
    agent,
    endpoint,
    caps: [...caps],
    auth,
    budgetSupport: true,
    instructions: INSTRUCTIONS,
  };
  return encode(AgentCardSchema, create(AgentCardSchema, card));
}

/** A guide for an agent that reads rather than links a library. */
export const PROTOCOL_GUIDE = `NEKTE, as this platform speaks it
=================================

Calls are JSON-RPC 2.0, posted as application/json:
  POST /nekte           every living agent behind one address
  POST /nekte/{agent}   one agent, as if it were a server of its own
An error is answered with HTTP 200 and a JSON-RPC error. Only missing credentials (401), a body that is too long (413)
and another content type (415) have a status of their own.

Finding what there is
  nekte.discover {"level": 0}                      id, cat and h of each capability: some eight tokens apiece
  nekte.discover {"level": 1, "filter": {...}}     adds what it does and what it costs
  nekte.discover {"level": 2, "filter": {"id": "sentiment"}}   adds the schemas and examples
The filter knows category, query (words), id, top_k and threshold. Up to 1000 capabilities are listed, 100 at level 2;
narrow the filter to see others. At /nekte an id that several agents offer is written agent/capability.

Invoking
  nekte.invoke {"cap": "sentiment", "h": "a1b2c3d4", "in": {...}, "budget": {"max_tokens": 100, "detail_level": "compact"}}
Send the hash h that you discovered. If the capability has changed, error -32001 brings its present hash and schema, so
that you can call again at once. The input is always checked.

Delegating
  nekte.delegate {"task": {"id": "mine-1", "desc": "...", "timeout_ms": 30000}, "context": {"data": {...},
    "permissions": {"forward": false, "persist": false, "derive": true}, "ttl_s": 3600}}
The answer is a stream of server-sent events: progress, partial, status_change, and at the end one of complete, error,
cancelled. Losing the stream does not stop the task: post the same task again, with the header Last-Event-ID set to the
last id that you saw, and the rest arrives. The same id with another body is refused.

Afterwards
  nekte.task.status {"task_id": "mine-1"}
  nekte.task.cancel {"task_id": "mine-1", "reason": "..."}

Budgets
A result has up to three levels: full, compact, minimal. It is sent at the level that you ask for, or the next lower one
that fits max_tokens; a token is estimated as four characters. Without a budget it is compact within 500 tokens. If even
the shortest form is too long, error -32003 says how much is needed.

Errors
  -32001 VERSION_MISMATCH      -32002 CAPABILITY_NOT_FOUND   -32003 BUDGET_EXCEEDED   -32005 CONTEXT_PERMISSION_DENIED
  -32006 TASK_TIMEOUT          -32007 TASK_FAILED            -32008 VERIFICATION_FAILED
  -32009 TASK_NOT_FOUND        -32010 TASK_NOT_CANCELLABLE
  -32050 to -32058 are the platform's own. Every error's data has a reason in words.
`;
