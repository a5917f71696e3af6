import { toJson } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentService, type AgentVersion } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { useState } from "react";
import { Differences } from "../../parts/differences.tsx";
import { Card, Time } from "../../parts/facts.tsx";
import { Empty, Loading, Refused } from "../../parts/states.tsx";
import { Text } from "../../parts/text.tsx";

/** Shows the versions of an agent's registration, and the changes between two versions. */
export function Versions({ agentId }: { readonly agentId: string }) {
  const query = useQuery(AgentService.method.listAgentVersions, { agentId, pageSize: 100 });
  const versions = [...(query.data?.versions ?? [])].sort(
    (one, other) => revisionOf(other) - revisionOf(one),
  );
  const [pair, setPair] = useState<readonly [number, number]>([1, 0]);
  if (query.isPending) return <Loading what="versions" />;
  if (query.isError) return <Refused error={query.error} />;
  if (versions.length === 0) return <Empty title="No versions" />;
  const [before, after] = [versions[pair[0]] ?? versions[0], versions[pair[1]]];
  return (
    <div className="columns even">
      <Card title="Versions">
        <ol className="plain-list" reversed>
          {versions.map((version) => (
            <li key={revisionOf(version)} className="row wrap">
              <strong>Revision {revisionOf(version)}</strong>
              <Text value={version.agent?.version ?? ""} />
              <span className="quiet">
                <Time value={version.createTime} />
              </span>
            </li>
          ))}
        </ol>
      </Card>
      <Card title="Differences">
        <div className="filters">
          <Choice
            label="From"
            versions={versions}
            value={pair[0]}
            choose={(index) => setPair([index, pair[1]])}
          />
          <Choice
            label="To"
            versions={versions}
            value={pair[1]}
            choose={(index) => setPair([pair[0], index])}
          />
        </div>
        <Differences before={documentOf(before)} after={documentOf(after)} />
      </Card>
    </div>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly versions: readonly AgentVersion[];
  readonly value: number;
  readonly choose: (index: number) => void;
}

function Choice({ label, versions, value, choose }: ChoiceProps) {
  return (
    <label className="field">
      {label}
      <select value={value} onChange={(event) => choose(Number(event.target.value))}>
        {versions.map((version, index) => (
          <option key={revisionOf(version)} value={index}>
            Revision {revisionOf(version)}
          </option>
        ))}
      </select>
    </label>
  );
}

function revisionOf({ agent }: AgentVersion): number {
  return Number(agent?.revision ?? 0n);
}

function documentOf(version: AgentVersion | undefined): unknown {
  return version?.agent === undefined ? {} : toJson(AgentSchema, version.agent);
}
