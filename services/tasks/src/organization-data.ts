import type { PurgeRule } from "@depute/core";

/**
 * The rules by which a purge of an organization handles the tables of the tasks service. docs/operations.md shows these
 * rules.
 */
export const ORGANIZATION_DATA: readonly PurgeRule[] = [
  {
    kind: "tasks",
    tables: [
      ...["tasks", "task_inputs", "task_events", "task_results", "task_checkpoints", "task_provided_inputs"],
      ...["task_reports", "task_requests", "task_commands", "task_contexts", "task_artifacts"],
      ...["task_artifact_bytes", "task_blocks", "task_spend", "output_schemas", "open_tasks"],
    ],
    owned: "its tasks with inputs, outputs, events, artifacts and tombstones; open tasks are cancelled first",
    deletes: "all",
    remains: "",
  },
  {
    kind: "conversations and webhooks",
    tables: [
      ...["conversations", "conversation_messages", "conversation_partials", "conversation_webhooks"],
      "push_remotes",
    ],
    owned: "conversations and webhooks of its tasks, and the tasks' copies at other servers",
    deletes: "some",
    remains: "a copy stays until the other server has acknowledged its cancellation",
  },
  {
    kind: "states of delegations",
    tables: ["task_delegations"],
    owned: "last states of its tasks' delegations",
    deletes: "some",
    remains: "a state stays until the tokens service has received it",
  },
  {
    kind: "reviews of tasks",
    tables: ["task_reviews", "task_review_calls", "task_review_inquiries"],
    owned: "reviews of its tasks, and calls about them",
    deletes: "some",
    remains: "a call stays until the verifier has answered it",
  },
  {
    kind: "contexts",
    tables: ["contexts", "context_readers", "context_sources"],
    owned: "its shared contexts",
    deletes: "all",
    remains: "",
  },
  {
    kind: "messages",
    tables: [
      ...["cap_lineages", "cap_messages", "cap_inbox", "cap_parties", "cap_tasks", "cap_requests"],
      ...["cap_refusals", "cap_tool_results", "cap_held"],
    ],
    owned: "its messages, by lineage; a lineage with an open task waits for the task's end",
    deletes: "all",
    remains: "",
  },
  {
    kind: "mailboxes",
    tables: ["cap_mailboxes", "delegate_limits"],
    owned: "positions of its agents' inboxes, and limits of its agents",
    deletes: "none",
    remains: "for ever: a reader detects the gap by the position. The rows contain an agent's id and numbers",
  },
  {
    kind: "executions",
    tables: [
      ...["executions", "execution_receipts", "execution_settlements", "execution_verifications"],
      ...["execution_reviews", "execution_callbacks"],
    ],
    owned: "executions that its agents bought, with receipts",
    deletes: "some",
    remains: "an execution stays until it is settled: purge again",
  },
  {
    kind: "copies of offers",
    tables: ["execution_offers"],
    owned: "offers of its agents that were bought",
    deletes: "none",
    remains: "for ever: the copies are the terms of the buyers' executions",
  },
  {
    kind: "sessions",
    tables: [
      ...["sessions", "session_messages", "session_parties", "session_proofs", "session_rates"],
      ...["session_disputes", "session_evidence", "session_evidence_parties", "session_evidence_uses"],
      "session_works",
    ],
    owned: "sessions in which its agents took part",
    deletes: "none",
    remains: "for ever: signed and hash-chained messages are evidence of all parties",
  },
  {
    kind: "state of the tasks service",
    tables: ["cursors"],
    owned: "",
    deletes: "none",
    remains: "",
  },
];
