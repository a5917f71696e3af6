import type { Place } from "../rules/route.ts";
import { AgentPage } from "./agents/agent.tsx";
import { AgentList } from "./agents/list.tsx";

export default function Agents({ place }: { readonly place: Place }) {
  return place.id === "" ? <AgentList /> : <AgentPage key={place.id} id={place.id} />;
}
