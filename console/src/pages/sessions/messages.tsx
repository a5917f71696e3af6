import { toJson } from "@bufbuild/protobuf";
import { EnvelopeSchema, Performative } from "@depute/contracts/asp/v0/envelope_pb";
import type { TranscriptEntry } from "@depute/contracts/asp/v0/transcript_pb";
import { Tag, TimeText } from "../../parts/facts.tsx";
import { Json } from "../../parts/json.tsx";
import { Empty } from "../../parts/states.tsx";
import { Id, Text } from "../../parts/text.tsx";
import { enumWord } from "../../rules/enum-word.ts";

/** Lists the messages of a session in order, each with the hash of the previous message. */
export function Messages({ entries }: { readonly entries: readonly TranscriptEntry[] }) {
  if (entries.length === 0) return <Empty title="No messages yet" />;
  return (
    <ol className="timeline">
      {entries.map((entry, index) => (
        <Message key={entry.ordinal} entry={entry} before={entries[index - 1]} />
      ))}
    </ol>
  );
}

function Message({
  entry,
  before,
}: {
  readonly entry: TranscriptEntry;
  readonly before: TranscriptEntry | undefined;
}) {
  const { envelope, ordinal, receivedAt } = entry;
  if (envelope === undefined) return null;
  const { integrity } = envelope;
  const isLinked = before === undefined || integrity?.previousHash === before.envelope?.integrity?.hash;
  return (
    <li className={`moment moment-${isLinked ? "active" : "bad"}`}>
      <div className="moment-head">
        <span className="row wrap">
          <strong>{enumWord(Performative, envelope.performative)}</strong>
          <Text value={envelope.sender?.agentId ?? ""} />
        </span>
        <span className="quiet small-text">
          #{ordinal} · <TimeText value={receivedAt} />
        </span>
      </div>
      <div className="quiet small-text">
        <Id value={integrity?.previousHash || "start"} max={20} /> →{" "}
        <Id value={integrity?.hash ?? ""} max={20} />{" "}
        {!isLinked && <Tag tone="bad">Does not follow the message before</Tag>}
      </div>
      <details>
        <summary>Envelope {ordinal}</summary>
        <Json value={toJson(EnvelopeSchema, envelope)} label={`Envelope ${ordinal}`} />
      </details>
    </li>
  );
}
