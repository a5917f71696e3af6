import { useQuery } from "@connectrpc/connect-query";
import type { ExecutionReceipt } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ExecutionService } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { TimeText } from "../../parts/facts.tsx";
import { Empty, Freshness, Loading, Refused } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Line } from "../../parts/text.tsx";
import { goTo } from "../../rpc/place.ts";
import { unlessRefused } from "../../rpc/refusal.ts";
import { minorUnits } from "../../rules/money.ts";
import { hashOf } from "../../rules/route.ts";
import { ExecutionTag } from "./status.tsx";

const COLUMNS: readonly Column<ExecutionReceipt>[] = [
  {
    title: "Request",
    grow: 2,
    cell: ({ requestId }) => (
      <a className="row-link" href={hashOf({ page: "executions", id: requestId })}>
        <Line value={requestId} max={60} />
      </a>
    ),
  },
  { title: "Status", grow: 1, cell: ({ status }) => <ExecutionTag status={status} /> },
  {
    title: "Buyer",
    grow: 1.2,
    isWide: true,
    cell: ({ buyerAgentId }) => <Line value={buyerAgentId} max={40} />,
  },
  {
    title: "Seller",
    grow: 1.2,
    isWide: true,
    cell: ({ sellerAgentId }) => <Line value={sellerAgentId} max={40} />,
  },
  {
    title: "Amount",
    grow: 0.9,
    isWide: true,
    align: "end",
    cell: ({ financials }) =>
      financials?.finalAmount === undefined
        ? "–"
        : minorUnits(financials.finalAmount, financials.currency ?? ""),
  },
  { title: "Issued", grow: 1, align: "end", cell: ({ issuedAt }) => <TimeText value={issuedAt} /> },
];

/** Lists the executions of a buyer or a seller, each with its newest receipt. */
export function ExecutionList({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { buyer = "", seller = "" } = query;
  const party =
    seller === ""
      ? ({ case: "buyerAgentId", value: buyer } as const)
      : ({ case: "sellerAgentId", value: seller } as const);
  const isNamed = party.value !== "";
  const read = useQuery(
    ExecutionService.method.listExecutions,
    { party, pageSize: 500 },
    { refetchInterval: unlessRefused(3_000), enabled: isNamed, retry: false },
  );
  const rows = read.data?.receipts ?? [];
  const set = (name: string, value: string) =>
    goTo({ page: "executions", query: { [name]: value } }, "replace");
  return (
    <>
      <div className="page-head">
        <h1>Executions</h1>
        {isNamed && <Freshness query={read} />}
      </div>
      <form className="filters" aria-label="Party" onSubmit={(event) => event.preventDefault()}>
        <label className="field">
          Buyer's agent id
          <input type="search" value={buyer} onChange={(event) => set("buyer", event.target.value)} />
        </label>
        <label className="field">
          Seller's agent id
          <input type="search" value={seller} onChange={(event) => set("seller", event.target.value)} />
        </label>
      </form>
      {!isNamed && <Empty title="Name a party">Executions are listed by their buyer or their seller.</Empty>}
      {isNamed && read.isPending && <Loading what="executions" />}
      {read.isError && <Refused error={read.error} />}
      {read.isSuccess && rows.length === 0 && <Empty title="No executions of this party" />}
      {rows.length > 0 && (
        <Table label="Executions" rows={rows} keyOf={({ requestId }) => requestId} columns={COLUMNS} />
      )}
    </>
  );
}
