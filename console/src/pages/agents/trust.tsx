import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import {
  SessionResult,
  type TrustEntry,
  TrustService,
  type TrustView,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { Card, Fact, Facts, Time } from "../../parts/facts.tsx";
import { Plot } from "../../parts/plot.tsx";
import { Empty, Loading, Refused } from "../../parts/states.tsx";
import { Id, Text } from "../../parts/text.tsx";
import { unlessRefused } from "../../rpc/refusal.ts";
import { enumWord } from "../../rules/enum-word.ts";

/** Milliseconds between two reads of the trust. No RPC streams evidence, so the page reads at intervals. */
const READ_MS = 5_000;

/** Shows the trust in an agent, its history, and the evidence behind each change. */
export function Trust({ agentId }: { readonly agentId: string }) {
  const often = { refetchInterval: unlessRefused(READ_MS) };
  const trust = useQuery(TrustService.method.getTrust, { agentId }, often);
  const explained = useQuery(TrustService.method.explainTrust, { agentId, pageSize: 500 }, often);
  if (trust.isPending || explained.isPending) return <Loading what="trust" />;
  if (trust.isError) return <Refused error={trust.error} />;
  if (explained.isError) return <Refused error={explained.error} />;
  const entries = [...explained.data.entries].sort((one, other) => Number(one.sequence - other.sequence));
  return (
    <div className="columns">
      <div className="stack">
        <Card title="Score over time">
          {entries.length === 0 ? (
            <Empty title="No evidence yet">The score begins at its default.</Empty>
          ) : (
            <Plot
              label="Trust score"
              x={entries.map(({ time }) => (time === undefined ? 0 : timestampMs(time) / 1_000))}
              lines={[
                { name: "score", color: "--accent", values: entries.map(({ scoreAfter }) => scoreAfter) },
              ]}
            />
          )}
        </Card>
        {entries.length > 0 && (
          <Card title="Evidence">
            <ol className="plain-list" reversed>
              {entries.toReversed().map((entry) => (
                <Evidence key={String(entry.sequence)} entry={entry} />
              ))}
            </ol>
          </Card>
        )}
      </div>
      {trust.data.overall !== undefined && <Overall view={trust.data.overall} />}
    </div>
  );
}

function Overall({ view }: { readonly view: TrustView }) {
  const components = Object.entries(view.components ?? {}).filter(([, value]) => typeof value === "number");
  return (
    <Card title="Trust now">
      <p className="figure-value">{view.score.toFixed(1)} of 100</p>
      <Facts>
        <Fact name="Level">{view.level}</Fact>
        <Fact name="Pieces of evidence">{String(view.evidenceCount)}</Fact>
        <Fact name="Last evidence">{view.lastEvidenceTime && <Time value={view.lastEvidenceTime} />}</Fact>
        {components.map(([name, value]) => (
          <Fact key={name} name={name.replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`)}>
            {Number(value).toFixed(1)}
          </Fact>
        ))}
      </Facts>
    </Card>
  );
}

function Evidence({ entry }: { readonly entry: TrustEntry }) {
  const { evidence, scoreBefore, scoreAfter } = entry;
  return (
    <li>
      <div className="moment-head">
        <strong>{evidenceWords(entry)}</strong>
        <span>
          {scoreBefore.toFixed(1)} → {scoreAfter.toFixed(1)}
        </span>
      </div>
      <p className="quiet small-text">
        <Time value={entry.time} /> · from <Text value={evidence?.counterpartAgentId || entry.recordedBy} /> ·
        recorded by <Id value={entry.recordedBy} />
      </p>
    </li>
  );
}

function evidenceWords({ evidence }: TrustEntry): string {
  const kind = evidence?.kind;
  switch (kind?.case) {
    case "attestation":
      return kind.value.success ? "Attested success" : "Attested failure";
    case "session":
      return `Session: ${enumWord(SessionResult, kind.value.result).toLowerCase()}`;
    case "rating":
      return `Rating: ${kind.value.stars} stars`;
    case "endorsement":
      return "Endorsement";
    case "signedImport":
      return "Signed import";
    default:
      return "Evidence of a newer platform";
  }
}
