/** The topics of nekte.introspect; `all` is the whole guide. (NEKTE library) */
export type Topic = "budget" | "discovery" | "errors" | "tasks" | "all";

const BEGIN = `NEKTE, as this platform speaks it
=================================

Calls are JSON-RPC 2.0, posted as application/json:
  POST /nekte           every living agent behind one address
  POST /nekte/{agent}   one agent, as if it were a server of its own
Below each of the two, GET /health says whether it serves and GET /.well-known/nekte.json has the card.
An error is answered with HTTP 200 and a JSON-RPC error. Only missing credentials (401), a body that is too slow (408) or too
long (413), and another content type (415) have a status of their own.
  nekte.introspect {"topic": "tasks"}              this guide, or its part on budget, discovery, errors or tasks
`;

const DISCOVERY = `Finding what there is
  nekte.discover {"level": 0}                      L0: id, cat and h of each capability, some eight tokens apiece
  nekte.discover {"level": 1, "filter": {...}}     L1: adds what it does and what it costs
  nekte.discover {"level": 2, "filter": {"id": "sentiment"}}   L2: adds the schemas and examples
The filter knows category, query (words), id, top_k and threshold. Up to 1000 capabilities are listed, 100 at level 2;
narrow the filter to see others. At /nekte an id that several agents offer is written agent/capability.

Invoking
  nekte.invoke {"cap": "sentiment", "h": "a1b2c3d4", "in": {...}, "budget": {"max_tokens": 100, "detail_level": "compact"}}
Send the hash h that you discovered. If the capability has changed, error -32001 brings its present hash and schema, so
that you can call again at once. The input is always checked. The result's meta has the task_id of the run, for nekte.task.status
and nekte.verify. Closing the connection cancels the run.
`;

const TASKS = `Delegating
  nekte.delegate {"task": {"id": "mine-1", "desc": "...", "timeout_ms": 30000}, "context": {"data": {...},
    "permissions": {"forward": false, "persist": true, "derive": true}, "ttl_s": 3600}}
The answer is a stream of server-sent events: progress, partial, suspended, resumed, and at the end one of
complete, error, cancelled. It stays open while the task is suspended. Losing the stream does not stop the task: post the
same task again, with the header Last-Event-ID set to the last id that you saw, and the rest arrives. The same id with
another body is refused. A refusal is an error event. With "Accept: application/json" alone, the answer is JSON when the task has
ended: the data of the complete event, or a JSON-RPC error.
The context's data is the task's input, for ttl_s seconds and under its permissions. With persist false it is never written to
disk, and is gone with the process that holds it, too. Work whose context is gone before a worker has it fails with -32004.

Afterwards
  nekte.task.status {"task_id": "mine-1"}
  nekte.task.cancel {"task_id": "mine-1", "reason": "..."}   a task that was cancelled before is -32010
  nekte.task.resume {"task_id": "mine-1", "budget": {...}}   a suspended task goes on from its checkpoint
  nekte.verify {"task_id": "mine-1", "result_hash": "...", "verification_type": "deterministic"}
Your task id is unique for you and the addressed agent: the same id at another agent is another task.
result_hash is the SHA-256 of the result's canonical JSON (RFC 8785) in hexadecimal, with or without sha256:, whole or its
first 12 digits and more. "checks": ["hash", "sample", "source"] shows the hash, an input with its output, and who did it;
"attestation" brings what the worker signed of its result.

Sharing contexts
  nekte.context {"envelope": {"data": {...}, "permissions": {...}, "ttl_s": 3600, "scope": ["sentiment"]}}
  nekte.context {"action": "request", "envelope": {"id": "..."}}
  nekte.context {"action": "revoke", "envelope": {"id": "..."}}
Sharing answers the id. At /nekte/{agent} that agent may read the context; at /nekte only those to whom it is sent with a
task. To send it, delegate with "compression": "reference" and the id in the task's context; its data is not sent again. With
a holder proof, which counts for one call, that is the id that was answered to an envelope without one. A context with a scope is for work of these capabilities: a delegation that carries one names its
capability, "task": {"cap": "sentiment", ...}, whose input is the context's data; a request names it in its own scope.
"derived_from": ["..."] in an envelope names the contexts that its data was made of. Each of them has to allow derive.
`;

const BUDGET = `Budgets
  "budget": {"max_tokens": 500, "detail_level": "compact"}
A result has up to three levels: full, compact, minimal. It is sent at the detail_level that you ask for, or the next lower one
that fits max_tokens; a token is estimated as four characters. A partial result that does not fit is not sent. Without
a budget it is compact within 500 tokens. If even the shortest form is too long, error -32003 says how much is needed: repeat
the call with a larger budget and the same id. For a delegation that is task.id; for an invocation it is the task_id of the
error's data.
`;

const ERRORS = `Errors
  -32001 VERSION_MISMATCH      -32002 CAPABILITY_NOT_FOUND   -32003 BUDGET_EXCEEDED
  -32004 CONTEXT_EXPIRED       -32005 CONTEXT_PERMISSION_DENIED
  -32006 TASK_TIMEOUT          -32007 TASK_FAILED            -32008 VERIFICATION_FAILED
  -32009 TASK_NOT_FOUND        -32010 TASK_NOT_CANCELLABLE   -32011 TASK_NOT_RESUMABLE
  -32050 to -32058 are the platform's own. Every error's data has a reason in words.
`;

/** The sections of the guide, for agents that use no NEKTE library. */
export const GUIDES: Readonly<Record<Topic, string>> = {
  budget: BUDGET,
  discovery: DISCOVERY,
  errors: ERRORS,
  tasks: TASKS,
  all: [BEGIN, DISCOVERY, TASKS, BUDGET, ERRORS].join("\n"),
};
