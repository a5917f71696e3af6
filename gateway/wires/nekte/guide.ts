/** The topics of nekte.introspect; `all` is the whole guide. (NEKTE library) */
export type Topic = "budget" | "discovery" | "errors" | "tasks" | "all";

const BEGIN = `NEKTE on this platform
======================

Calls are JSON-RPC 2.0, posted as application/json:
  POST /nekte           all live agents at one address
  POST /nekte/{agent}   one agent, like a separate server
Below each address, GET /health returns whether it serves requests, and GET /.well-known/nekte.json returns the card.
The answer to a failed call is HTTP 200 with a JSON-RPC error. Only faults of the HTTP request have another status: missing
credentials (401), a host or page that may not call (403), an unknown path (404), another method than POST (405), an accept
header without JSON and events (406), a body that is too slow (408) or too long (413), and a wrong content type (415).
  nekte.introspect {"topic": "tasks"}              returns this guide, or its part on budget, discovery, errors or tasks
`;

const DISCOVERY = `Finding capabilities
  nekte.discover {"level": 0}                      L0: id, cat and h of each capability, about eight tokens each
  nekte.discover {"level": 1, "filter": {...}}     L1: adds the description and the cost
  nekte.discover {"level": 2, "filter": {"id": "sentiment"}}   L2: adds the schemas and examples
The filter has the members category, query (words), id, top_k and threshold. The list has at most 1000 capabilities, 100 at
level 2; use a stricter filter to see others. At /nekte an id that several agents offer is written agent/capability.

Invoking
  nekte.invoke {"cap": "sentiment", "h": "a1b2c3d4", "in": {...}, "budget": {"max_tokens": 100, "detail_level": "compact"}}
Send the hash h from the discovery. If the capability has changed, error -32001 contains its current hash and schema, so
that you can call again immediately. The platform always checks the input. The result's meta contains the task_id of
the run, for nekte.task.status and nekte.verify. Closing the connection cancels the run.
`;

const TASKS = `Delegating
  nekte.delegate {"task": {"id": "mine-1", "desc": "...", "timeout_ms": 30000}, "context": {"data": {...},
    "permissions": {"forward": false, "persist": true, "derive": true}, "ttl_s": 3600}}
The answer is a stream of server-sent events: progress, partial, suspended, resumed, and at the end one of
complete, error, cancelled. It stays open while the task is suspended. If you lose the stream, the task
continues. To get the remaining events, post the same task again, with the header Last-Event-ID set to the last id that you
received. The same id with another body is refused. A refusal is an error event. If you accept only application/json, the
answer comes when the task has ended: the data of the complete event, or a JSON-RPC error.
The context's data is the task's input, for ttl_s seconds and under its permissions. With persist false, it is never written to
disk, and is also lost when the platform's process ends. If the context ends before a worker gets the task, the task fails
with -32004.

Afterwards
  nekte.task.status {"task_id": "mine-1"}
  nekte.task.cancel {"task_id": "mine-1", "reason": "..."}   a task that is already cancelled gets error -32010
  nekte.task.resume {"task_id": "mine-1", "budget": {...}}   a suspended task continues from its checkpoint
  nekte.verify {"task_id": "mine-1", "result_hash": "...", "verification_type": "deterministic"}
Your task id is unique for you and the addressed agent: the same id at another agent is another task.
result_hash is the SHA-256 of the result's canonical JSON (RFC 8785) in hexadecimal, with or without sha256:, complete or
shortened to at least its first 12 digits. "checks": ["hash", "sample", "source"] returns the hash, the input with the output,
and the agent; "attestation" returns the worker's signed attestation of the result.

Sharing contexts
  nekte.context {"envelope": {"data": {...}, "permissions": {...}, "ttl_s": 3600, "scope": ["sentiment"]}}
  nekte.context {"action": "request", "envelope": {"id": "..."}}
  nekte.context {"action": "revoke", "envelope": {"id": "..."}}
The answer to a shared context contains its id. If you share at /nekte/{agent}, that agent may read the context. If you share at
/nekte, only agents that get the context with a task may read it. To send a context with a task, delegate with "compression":
"reference" and the id in the task's context; the data is not sent again. With a holder proof, which is valid for one call, use
the server's id: the answer contains it if your envelope had no id. A context with a scope is only for work of the capabilities
in this scope. A delegation with such a context names its capability, "task": {"cap": "sentiment", ...}, whose input is the
context's data. A request for such a context names the capability in its own scope. "derived_from": ["..."] in an envelope names
the contexts from which its data was derived. Each of these contexts must allow derive.
`;

const BUDGET = `Budgets
  "budget": {"max_tokens": 500, "detail_level": "compact"}
A result has up to three levels: full, compact, minimal. The platform sends the detail_level that you request, or the next lower
level that fits max_tokens. A token is estimated as four characters. A partial result that does not fit is not sent. If you
state no budget, the result is compact within 500 tokens. If even the shortest form is too long, error -32003 contains the
required number of tokens: repeat the call with a larger budget and the same id. For a delegation, the id is task.id; for an
invocation, the task_id in the error's data.
`;

const ERRORS = `Errors
  -32001 VERSION_MISMATCH      -32002 CAPABILITY_NOT_FOUND   -32003 BUDGET_EXCEEDED
  -32004 CONTEXT_EXPIRED       -32005 CONTEXT_PERMISSION_DENIED
  -32006 TASK_TIMEOUT          -32007 TASK_FAILED            -32008 VERIFICATION_FAILED
  -32009 TASK_NOT_FOUND        -32010 TASK_NOT_CANCELLABLE   -32011 TASK_NOT_RESUMABLE
  -32050 to -32058 are the platform's own codes. The data of every error contains a reason as a word.
`;

/** The sections of the guide, for agents that use no NEKTE library. */
export const GUIDES: Readonly<Record<Topic, string>> = {
  budget: BUDGET,
  discovery: DISCOVERY,
  errors: ERRORS,
  tasks: TASKS,
  all: [BEGIN, DISCOVERY, TASKS, BUDGET, ERRORS].join("\n"),
};
