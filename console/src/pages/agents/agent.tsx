import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { type Agent, AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { useMemo } from "react";
import { Card, Fact, Facts, Length, Time } from "../../parts/facts.tsx";
import { Liveness, NotShown, Opening } from "../../parts/states.tsx";
import { TabsView } from "../../parts/tabs.tsx";
import { Id, Text } from "../../parts/text.tsx";
import { unlessRefused } from "../../rpc/refusal.ts";
import { useWake } from "../../rpc/wake.ts";
import { enumWord } from "../../rules/enum-word.ts";
import { hashOf } from "../../rules/route.ts";
import { Capabilities } from "./capabilities.tsx";
import { DelegationCheck } from "./delegation-check.tsx";
import { Health } from "./health.tsx";
import { Offers } from "./offers.tsx";
import { Trust } from "./trust.tsx";
import { Versions } from "./versions.tsx";

/** Shows one agent, and updates when the agent changes. */
export function AgentPage({ id }: { readonly id: string }) {
  const transport = useTransport();
  const client = useMemo(() => createClient(AgentService, transport), [transport]);
  const connection = useWake(`agent ${id}`, (signal) =>
    client.watchAgents({ agentId: id, sendStart: true }, { signal }),
  );
  const query = useQuery(
    AgentService.method.getAgent,
    { agentId: id },
    { refetchInterval: unlessRefused(10_000) },
  );
  const agent = query.data?.agent;
  return (
    <>
      <nav aria-label="Path" className="crumbs">
        <a href={hashOf({ page: "agents" })}>Agents</a>
      </nav>
      {query.isPending && <Opening what="Agent" />}
      {query.isError && agent === undefined && <NotShown what="Agent" error={query.error} />}
      {agent !== undefined && (
        <>
          <div className="page-head">
            <h1>
              <Text value={agent.displayName || agent.id} />
            </h1>
            <Health agent={agent} />
            <Liveness connection={connection} />
          </div>
          {agent.description !== "" && (
            <p>
              <Text value={agent.description} />
            </p>
          )}
          <TabsView
            label="Parts of the agent"
            tabs={[
              { id: "facts", title: "Facts", content: () => <AgentFacts agent={agent} /> },
              { id: "capabilities", title: "Capabilities", content: () => <Capabilities agentId={id} /> },
              { id: "versions", title: "Versions", content: () => <Versions agentId={id} /> },
              { id: "offers", title: "Offers", content: () => <Offers agentId={id} /> },
              { id: "trust", title: "Trust", content: () => <Trust agentId={id} /> },
              { id: "check", title: "May it delegate?", content: () => <DelegationCheck agentId={id} /> },
            ]}
          />
        </>
      )}
    </>
  );
}

function AgentFacts({ agent }: { readonly agent: Agent }) {
  return (
    <div className="columns even">
      <Card title="Registration">
        <Facts>
          <Fact name="Id">
            <Id value={agent.id} max={128} />
          </Fact>
          <Fact name="Version">
            <Text value={agent.version} />
          </Fact>
          <Fact name="Revision">{String(agent.revision)}</Fact>
          <Fact name="Principal">{agent.principal !== "" && <Id value={agent.principal} max={44} />}</Fact>
          <Fact name="Organization">{agent.organization !== "" && <Text value={agent.organization} />}</Fact>
          <Fact name="Visibility">{enumWord(AgentVisibility, agent.visibility)}</Fact>
          <Fact name="Protocols">
            {agent.protocols.length > 0 && <Text value={agent.protocols.join(", ")} />}
          </Fact>
          <Fact name="Tags">{agent.tags.length > 0 && <Text value={agent.tags.join(", ")} />}</Fact>
          <Fact name="Created">
            <Time value={agent.createTime} />
          </Fact>
          <Fact name="Updated">
            <Time value={agent.updateTime} />
          </Fact>
        </Facts>
      </Card>
      <Card title="Health">
        <Facts>
          <Fact name="Last heartbeat">
            <Time value={agent.heartbeatTime} />
          </Fact>
          <Fact name="Lease ends">
            <Time value={agent.leaseExpireTime} />
          </Fact>
          <Fact name="Lease">{agent.leaseDuration && <Length value={agent.leaseDuration} />}</Fact>
          <Fact name="Status message">
            {agent.statusMessage !== "" && <Text value={agent.statusMessage} />}
          </Fact>
        </Facts>
        <p>
          <a href={hashOf({ page: "tasks", query: { agent: agent.id } })}>Tasks of this agent</a>
        </p>
      </Card>
    </div>
  );
}
