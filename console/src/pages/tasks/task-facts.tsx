import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { Card, Fact, Facts, Length, Tag, Time } from "../../parts/facts.tsx";
import { Id, Text } from "../../parts/text.tsx";
import { attemptsOf } from "../../rules/attempts.ts";
import { dollars } from "../../rules/money.ts";
import { hashOf } from "../../rules/route.ts";
import { Lineage } from "./lineage.tsx";

/** Shows the facts about a task: parties, lineage, times, attempts, budget and checks. */
export function TaskFacts({ task, events }: { readonly task: Task; readonly events: readonly TaskEvent[] }) {
  return (
    <div className="stack">
      <Parties task={task} />
      <Lineage task={task} />
      <Times task={task} />
      <Attempts task={task} events={events} />
      <Budget task={task} />
      <Checks task={task} />
    </div>
  );
}

function Parties({ task }: { readonly task: Task }) {
  const { id, externalId, correlationId, delegator, agentId, capabilityId, capabilityHash } = task;
  return (
    <Card title="Parties">
      <Facts>
        <Fact name="Task id">
          <Id value={id} max={40} />
        </Fact>
        <Fact name="Agent">
          <a href={hashOf({ page: "agents", id: agentId })}>
            <Text value={agentId} />
          </a>
        </Fact>
        <Fact name="Delegator">
          <Id value={delegator} max={44} />
        </Fact>
        <Fact name="Capability">{capabilityId !== "" && <Text value={capabilityId} />}</Fact>
        <Fact name="Version hash">{capabilityHash !== "" && <Id value={capabilityHash} />}</Fact>
        <Fact name="External id">{externalId !== "" && <Text value={externalId} />}</Fact>
        <Fact name="Correlation id">
          {correlationId !== "" && (
            <a href={hashOf({ page: "tasks", query: { correlation: correlationId } })}>
              <Text value={correlationId} />
            </a>
          )}
        </Fact>
        <Fact name="Delegation">{task.delegationId !== "" && <Id value={task.delegationId} max={40} />}</Fact>
        <Fact name="Organization">{task.organization !== "" && <Text value={task.organization} />}</Fact>
        <Fact name="Priority">{task.priority}</Fact>
      </Facts>
    </Card>
  );
}

function Times({ task }: { readonly task: Task }) {
  const { limits, cancellation } = task;
  return (
    <Card title="Times and limits">
      <Facts>
        <Fact name="Created">
          <Time value={task.createTime} />
        </Fact>
        <Fact name="Ended">{task.endTime && <Time value={task.endTime} />}</Fact>
        <Fact name="Deadline">{task.expireTime && <Time value={task.expireTime} />}</Fact>
        <Fact name="Must start by">{task.startExpireTime && <Time value={task.startExpireTime} />}</Fact>
        <Fact name="Cancellation ends">
          {cancellation?.expireTime && <Time value={cancellation.expireTime} />}
        </Fact>
        <Fact name="Content kept until">{task.purgeTime && <Time value={task.purgeTime} />}</Fact>
        <Fact name="Limit in total">{limits?.total && <Length value={limits.total} />}</Fact>
        <Fact name="Limit in the queue">{limits?.queue && <Length value={limits.queue} />}</Fact>
        <Fact name="Limit of an attempt">{limits?.attempt && <Length value={limits.attempt} />}</Fact>
        <Fact name="Heartbeat within">{limits?.heartbeat && <Length value={limits.heartbeat} />}</Fact>
      </Facts>
    </Card>
  );
}

function Attempts({ task, events }: { readonly task: Task; readonly events: readonly TaskEvent[] }) {
  const attempts = attemptsOf(events);
  const max = task.retry?.maxAttempts ?? 0;
  return (
    <Card title="Attempts" aside={max > 0 && <span className="quiet small-text">at most {max}</span>}>
      {attempts.length === 0 && <p className="quiet">No worker has taken the task.</p>}
      <ul className="plain-list">
        {attempts.map(({ number, worker, outcome, tone }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: attempts are only added at the end, and numbers may repeat
          <li key={`${number} ${index}`} className="row wrap">
            <strong>Attempt {number}</strong>
            <Tag tone={tone}>{outcome}</Tag>
            <span className="quiet">
              worker <Id value={worker} max={24} />
            </span>
          </li>
        ))}
      </ul>
      {task.checkpointAvailable && <p className="quiet small-text">A checkpoint is stored.</p>}
    </Card>
  );
}

function Budget({ task }: { readonly task: Task }) {
  const { budget, spend, usage } = task;
  if (budget === undefined && spend === undefined && usage === undefined) return null;
  return (
    <Card title="Budget">
      <Facts>
        <Fact name="Tokens in the answer">
          {budget && `at most ${budget.maxTokens} (${budget.detailLevel})`}
        </Fact>
        <Fact name="Tokens in total">{spend?.maxTokens !== undefined && `at most ${spend.maxTokens}`}</Fact>
        <Fact name="Cost">
          {spend?.maxCostMicrocents !== undefined && `at most ${dollars(spend.maxCostMicrocents)}`}
        </Fact>
        <Fact name="Used tokens">{usage && String(usage.tokensUsed)}</Fact>
        <Fact name="Spent">{usage && dollars(usage.costMicrocents)}</Fact>
      </Facts>
    </Card>
  );
}

function Checks({ task }: { readonly task: Task }) {
  const { verification, contractId, attestationId, overseerId } = task;
  if (verification === undefined && contractId === "" && attestationId === "" && overseerId === "")
    return null;
  return (
    <Card title="Checks">
      <Facts>
        <Fact name="Contract">{contractId !== "" && <Id value={contractId} max={40} />}</Fact>
        <Fact name="Outcome">
          {verification && (
            <Tag tone={verification.passed ? "good" : "bad"}>
              {verification.passed ? "Passed" : "Not passed"}
            </Tag>
          )}
        </Fact>
        <Fact name="Method">{verification && <Text value={verification.method} />}</Fact>
        <Fact name="Details">{verification?.details && <Text value={verification.details} />}</Fact>
        <Fact name="Attestation">{attestationId !== "" && <Id value={attestationId} max={40} />}</Fact>
        <Fact name="Overseer">{overseerId !== "" && <Text value={overseerId} />}</Fact>
      </Facts>
    </Card>
  );
}
