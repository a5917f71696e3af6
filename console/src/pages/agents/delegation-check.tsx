import { useQuery } from "@connectrpc/connect-query";
import { PolicyDecision, PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { useState } from "react";
import { Card, Fact, Facts, Tag } from "../../parts/facts.tsx";
import { Loading, Refused } from "../../parts/states.tsx";
import { Text } from "../../parts/text.tsx";
import { enumWord } from "../../rules/enum-word.ts";

/** Shows whether this agent may delegate to another agent, and the reason for the answer. */
export function DelegationCheck({ agentId }: { readonly agentId: string }) {
  const [askedCheck, setAsked] = useState<{ to: string; justification: string; capabilityId: string }>();
  return (
    <div className="columns even">
      <Card title="May it delegate?">
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            const form = new FormData(event.currentTarget);
            const text = (name: string) => String(form.get(name) ?? "").trim();
            setAsked({
              to: text("to"),
              justification: text("justification"),
              capabilityId: text("capability"),
            });
          }}
        >
          <label className="field">
            To the agent
            <input name="to" required maxLength={128} />
          </label>
          <label className="field">
            For the capability (optional)
            <input name="capability" maxLength={193} />
          </label>
          <label className="field">
            Justification (optional)
            <input name="justification" maxLength={4000} />
          </label>
          <div>
            <button type="submit" className="button primary">
              Check
            </button>
          </div>
        </form>
      </Card>
      {askedCheck !== undefined && <Answer from={agentId} {...askedCheck} />}
    </div>
  );
}

interface AnswerProps {
  readonly from: string;
  readonly to: string;
  readonly justification: string;
  readonly capabilityId: string;
}

function Answer({ from, to, justification, capabilityId }: AnswerProps) {
  const query = useQuery(
    PolicyService.method.checkDelegation,
    { fromAgentId: from, toAgentId: to, justification, task: { capabilityId } },
    { retry: false },
  );
  if (query.isPending) return <Loading what="the policy" />;
  if (query.isError) return <Refused error={query.error} />;
  const { allowed, decision, whenToDelegate, overseerId, predicate, predicateFailure } = query.data;
  return (
    <Card title="Answer" aside={<Tag tone={allowed ? "good" : "bad"}>{allowed ? "Yes" : "No"}</Tag>}>
      <Facts>
        <Fact name="From">
          <Text value={from} />
        </Fact>
        <Fact name="To">
          <Text value={to} />
        </Fact>
        <Fact name="Reason">{enumWord(PolicyDecision, decision)}</Fact>
        <Fact name="Condition of the rule">{whenToDelegate !== "" && <Text value={whenToDelegate} />}</Fact>
        <Fact name="Overseer">{overseerId !== "" && <Text value={overseerId} />}</Fact>
        <Fact name="Predicate">{predicate !== "" && <Text value={predicate} />}</Fact>
        <Fact name="Why it fails">{predicateFailure !== "" && <Text value={predicateFailure} />}</Fact>
      </Facts>
    </Card>
  );
}
