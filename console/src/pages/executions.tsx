import type { Place } from "../rules/route.ts";
import { ExecutionPage } from "./executions/execution.tsx";
import { ExecutionList } from "./executions/list.tsx";

export default function Executions({ place }: { readonly place: Place }) {
  if (place.id !== "") return <ExecutionPage key={place.id} requestId={place.id} />;
  return <ExecutionList query={place.query} />;
}
