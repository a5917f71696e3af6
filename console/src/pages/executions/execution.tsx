import { toJson } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { ExecutionReceiptSchema } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import {
  ExecutionService,
  type NumberedReceipt,
  type Settlement,
  SettlementState,
} from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { Card, Fact, Facts, Time, TimeText } from "../../parts/facts.tsx";
import { Json } from "../../parts/json.tsx";
import { Liveness, NotShown, Opening, Refused } from "../../parts/states.tsx";
import { Id, Text } from "../../parts/text.tsx";
import { useFollow } from "../../rpc/follow.ts";
import { unlessRefused } from "../../rpc/refusal.ts";
import { useSoon } from "../../rpc/soon.ts";
import { readPause } from "../../rpc/wake.ts";
import { enumWord } from "../../rules/enum-word.ts";
import { minorUnits } from "../../rules/money.ts";
import { hashOf } from "../../rules/route.ts";
import { ExecutionTag } from "./status.tsx";

/** New receipts cause a new read of the execution, at most once in this many milliseconds. */
const READ_MS = 200;

/** Shows one execution: its receipts as they are issued, and its settlement. */
export function ExecutionPage({ requestId }: { readonly requestId: string }) {
  const queries = useQueryClient();
  const read = useSoon(() => void queries.invalidateQueries(), READ_MS);
  const { receipts, connection } = useReceipts(requestId, read);
  const name = { case: "requestId", value: requestId } as const;
  const query = useQuery(
    ExecutionService.method.getExecution,
    { name },
    { refetchInterval: unlessRefused(readPause(connection, 3_000)), retry: false },
  );
  // The settlement can still change after the last receipt, and no stream reports that. So the page reads the
  // settlement at intervals.
  const money = useQuery(
    ExecutionService.method.getSettlement,
    { requestId },
    { refetchInterval: unlessRefused(3_000), retry: false },
  );
  const execution = query.data?.execution;
  return (
    <>
      <nav aria-label="Path" className="crumbs">
        <a href={hashOf({ page: "executions" })}>Executions</a>
      </nav>
      {query.isPending && <Opening what="Execution" />}
      {query.isError && execution === undefined && <NotShown what="Execution" error={query.error} />}
      {execution !== undefined && (
        <>
          <div className="page-head">
            <h1>
              Execution <Id value={requestId} max={60} />
            </h1>
            {execution.receipt && <ExecutionTag status={execution.receipt.status} />}
            <Liveness connection={connection} />
          </div>
          <div className="columns">
            <Card title="Receipts">
              <Receipts receipts={receipts} />
            </Card>
            <div className="stack">
              <Card title="Parties">
                <Facts>
                  <Fact name="Buyer">
                    <Text value={execution.receipt?.buyerAgentId ?? ""} />
                  </Fact>
                  <Fact name="Seller">
                    <Text value={execution.receipt?.sellerAgentId ?? ""} />
                  </Fact>
                  <Fact name="Offer">
                    <Text value={execution.receipt?.offerId ?? ""} />
                  </Fact>
                  <Fact name="Task">
                    {execution.taskId !== "" && (
                      <a href={hashOf({ page: "tasks", id: execution.taskId })}>{execution.taskId}</a>
                    )}
                  </Fact>
                  <Fact name="Created">
                    <Time value={execution.createTime} />
                  </Fact>
                </Facts>
              </Card>
              {money.isError && <Refused error={money.error} />}
              {money.data?.settlement !== undefined && <Money settlement={money.data.settlement} />}
            </div>
          </div>
        </>
      )}
    </>
  );
}

/** Returns the newest 500 receipts of an execution. Adds each new receipt when it is issued. */
function useReceipts(requestId: string, onReceipt: () => void) {
  const transport = useTransport();
  const client = useMemo(() => createClient(ExecutionService, transport), [transport]);
  const [receipts, setReceipts] = useState<readonly NumberedReceipt[]>([]);
  const cursor = useRef(0n);
  const isSettled = useRef(false);
  const connection = useFollow(requestId, {
    open: (signal) =>
      client.watchReceipts({ requestId, afterSequence: cursor.current, sendStart: true }, { signal }),
    take: ({ receipt }) => {
      if (receipt === undefined || receipt.sequence <= cursor.current) return false;
      cursor.current = receipt.sequence;
      isSettled.current = receipt.settles;
      onReceipt();
      setReceipts((before) => [...before.slice(-499), receipt]);
      return false;
    },
    isOver: () => isSettled.current,
  });
  return { receipts, connection };
}

function Receipts({ receipts }: { readonly receipts: readonly NumberedReceipt[] }) {
  return (
    <ol className="timeline">
      {receipts.map(({ sequence, receipt }) => (
        <li key={String(sequence)} className="moment moment-active">
          <div className="moment-head">
            {receipt && <ExecutionTag status={receipt.status} />}
            <span className="quiet small-text">
              #{String(sequence)} · <TimeText value={receipt?.issuedAt ?? ""} />
            </span>
          </div>
          {receipt?.statusReason !== undefined && (
            <p className="moment-detail">
              <Text value={receipt.statusReason} />
            </p>
          )}
          <details>
            <summary>Receipt {String(sequence)}</summary>
            <Json value={receipt && toJson(ExecutionReceiptSchema, receipt)} label={`Receipt ${sequence}`} />
          </details>
        </li>
      ))}
    </ol>
  );
}

function Money({ settlement }: { readonly settlement: Settlement }) {
  const { state, currency, limitAmount, entries } = settlement;
  return (
    <Card title="Money">
      <Facts>
        <Fact name="State">{enumWord(SettlementState, state)}</Fact>
        <Fact name="Limit">{minorUnits(limitAmount, currency)}</Fact>
        <Fact name="Authorization">
          {settlement.paymentAuthorizationId !== "" && (
            <Id value={settlement.paymentAuthorizationId} max={40} />
          )}
        </Fact>
      </Facts>
      <h3>Entries</h3>
      <ul className="plain-list">
        {entries.map((entry) => (
          <li key={`${entry.state} ${entry.time && timestampDate(entry.time).toISOString()}`}>
            {enumWord(SettlementState, entry.state)}: {minorUnits(entry.amount, currency)}{" "}
            <span className="quiet">
              <Text value={entry.reason} /> <Time value={entry.time} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
