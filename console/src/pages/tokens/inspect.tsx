import { useQuery } from "@connectrpc/connect-query";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { type InspectTokenResponse, TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { parseToken, SJT_FORMAT } from "@depute/dct";
import { useState } from "react";
import { Card, Fact, Facts, Tag, TimeText } from "../../parts/facts.tsx";
import { Loading, Refused } from "../../parts/states.tsx";
import { Id, Text } from "../../parts/text.tsx";
import { unlessRefused } from "../../rpc/refusal.ts";
import { enumWord } from "../../rules/enum-word.ts";
import { dollars } from "../../rules/money.ts";
import { hashOf } from "../../rules/route.ts";
import { type ChainBlock, chainBlocks } from "../../rules/token-chain.ts";

/** Shows a token block by block: the limits that each block adds, and whether the chain is valid now. */
export function Inspect() {
  const [token, setToken] = useState("");
  return (
    <div className="stack">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setToken(String(new FormData(event.currentTarget).get("token") ?? "").trim());
        }}
      >
        <label className="field">
          Token (base64url)
          <textarea name="token" rows={4} required spellCheck={false} autoComplete="off" />
        </label>
        <div>
          <button type="submit" className="button primary">
            Inspect
          </button>
        </div>
      </form>
      {token !== "" && <Inspected key={token} text={token} />}
    </div>
  );
}

function Inspected({ text }: { readonly text: string }) {
  const token = { token: text, format: SJT_FORMAT };
  const query = useQuery(
    TokenService.method.inspectToken,
    { token },
    { retry: false, refetchInterval: unlessRefused(3_000) },
  );
  const spend = useQuery(
    SpendService.method.getBudget,
    { token },
    { retry: false, refetchInterval: unlessRefused(3_000) },
  );
  const parsed = parseToken(token);
  if (query.isPending) return <Loading what="the token" />;
  if (query.isError) return <Refused error={query.error} />;
  const blocks = parsed.ok ? chainBlocks(parsed.token) : [];
  return (
    <>
      <Verdict result={query.data.result} />
      <ol className="plain-list">
        {blocks.map((block, index) => (
          <li key={block.delegationId}>
            <BlockCard
              block={block}
              index={index}
              revocationId={query.data.blocks[index]?.revocationId ?? ""}
              level={spend.data?.levels[index]}
            />
          </li>
        ))}
      </ol>
      {spend.isError && (
        <p className="quiet small-text">
          The spend is not shown: <Text value={spend.error.rawMessage} />
        </p>
      )}
    </>
  );
}

function Verdict({ result }: Pick<InspectTokenResponse, "result">) {
  if (result.case === "scope") {
    return (
      <p className="row wrap" role="status">
        <Tag tone="good">Holds now</Tag> {dollars(result.value.remainingBudgetMicrocents)} remain.
      </p>
    );
  }
  const denial = result.value;
  return (
    <p className="row wrap" role="status">
      <Tag tone="bad">Does not hold</Tag> {denial && enumWord(DenialType, denial.type)}
      {denial?.detail !== undefined && <Text value={denial.detail} />}
    </p>
  );
}

interface BlockCardProps {
  readonly block: ChainBlock;
  readonly index: number;
  readonly revocationId: string;
  readonly level:
    | { limitMicrocents: bigint; reservedMicrocents: bigint; spentMicrocents: bigint }
    | undefined;
}

function BlockCard({ block, index, revocationId, level }: BlockCardProps) {
  const title = index === 0 ? "Block 0: authority" : `Block ${index}: attenuation`;
  return (
    <Card title={title}>
      <Facts>
        <Fact name="Signed by">
          <Id value={block.signer} max={44} />
        </Fact>
        <Fact name="For">
          <Id value={block.delegatee} max={44} />
        </Fact>
        <Fact name="Delegation">
          <a href={hashOf({ page: "tokens", id: block.delegationId, query: { block: revocationId } })}>
            <Id value={block.delegationId} max={40} />
          </a>
        </Fact>
        <Fact name={index === 0 ? "Capabilities" : "Narrowed capabilities"}>
          {block.capabilities && (
            <ul className="plain-list">
              {block.capabilities.map((each) => (
                <li key={each}>
                  <code>
                    <Text value={each} />
                  </code>
                </li>
              ))}
            </ul>
          )}
        </Fact>
        <Fact name={index === 0 ? "Budget" : "Narrowed budget"}>
          {block.budget !== undefined && dollars(block.budget)}
        </Fact>
        <Fact name={index === 0 ? "Expires" : "Expires earlier"}>
          {block.expiresAt !== undefined && <TimeText value={block.expiresAt} />}
        </Fact>
        <Fact name="Further hops">{block.hops !== undefined && String(block.hops)}</Fact>
        <Fact name="Spend">
          {level !== undefined &&
            `${dollars(level.spentMicrocents)} spent, ${dollars(level.reservedMicrocents)} reserved, of ${dollars(level.limitMicrocents)}`}
        </Fact>
      </Facts>
      {index > 0 && block.narrowed.length === 0 && <p className="quiet">This block narrows nothing.</p>}
    </Card>
  );
}
