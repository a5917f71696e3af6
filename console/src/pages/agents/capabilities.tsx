import { useQuery } from "@connectrpc/connect-query";
import {
  type DiscoveredCapability,
  DiscoveryService,
} from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { useState } from "react";
import { Card, Fact, Facts } from "../../parts/facts.tsx";
import { bytesAsJson, Json } from "../../parts/json.tsx";
import { Empty, Loading, Refused } from "../../parts/states.tsx";
import { Id, Text } from "../../parts/text.tsx";

const LEVELS = ["L0: names", "L1: descriptions", "L2: schemas"];

/**
 * Lists the capabilities of an agent, as DiscoverCapabilities returns them for the level of detail that the user
 * chooses.
 */
export function Capabilities({ agentId }: { readonly agentId: string }) {
  const [level, setLevel] = useState(1);
  const query = useQuery(DiscoveryService.method.discoverCapabilities, { agentId, level, pageSize: 200 });
  const capabilities = query.data?.capabilities ?? [];
  return (
    <div className="stack">
      <div className="row wrap">
        <label className="field inline">
          Level
          <select value={level} onChange={(event) => setLevel(Number(event.target.value))}>
            {LEVELS.map((name, index) => (
              <option key={name} value={index}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {query.data !== undefined && (
          <span className="quiet small-text">
            {capabilities.length} capabilities, about {String(query.data.tokens)} tokens in a reader's context
          </span>
        )}
      </div>
      {query.isPending && <Loading what="capabilities" />}
      {query.isError && <Refused error={query.error} />}
      {query.isSuccess && capabilities.length === 0 && <Empty title="No capabilities" />}
      {capabilities.map((each) => (
        <Capability key={`${level} ${each.capability.value?.id}`} detail={each.capability} />
      ))}
    </div>
  );
}

function Capability({ detail }: { readonly detail: DiscoveredCapability["capability"] }) {
  if (detail.case === undefined) return null;
  const { id, cat, h } = detail.value;
  const described = detail.case === "reference" ? undefined : detail.value;
  const schemas = detail.case === "full" ? detail.value : undefined;
  return (
    <Card title={id.slice(0, 100)}>
      <Facts>
        <Fact name="Category">{cat && <Text value={cat} />}</Fact>
        <Fact name="Description">{described?.desc && <Text value={described.desc} />}</Fact>
        <Fact name="Version hash">
          <Id value={h} max={64} />
        </Fact>
        <Fact name="Usual time">{described?.cost?.avgMs !== undefined && `${described.cost.avgMs} ms`}</Fact>
        <Fact name="Usual tokens">
          {described?.cost?.avgTokens !== undefined && described.cost.avgTokens}
        </Fact>
        <Fact name="Hint">{described?.agentHint && <Text value={described.agentHint} />}</Fact>
      </Facts>
      {schemas !== undefined && (
        <>
          <h3>Input schema</h3>
          <Json value={bytesAsJson(schemas.inputSchema)} label={`Input schema of ${id}`} />
          <h3>Output schema</h3>
          <Json value={bytesAsJson(schemas.outputSchema)} label={`Output schema of ${id}`} />
        </>
      )}
    </Card>
  );
}
