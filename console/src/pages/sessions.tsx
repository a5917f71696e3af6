import type { Place } from "../rules/route.ts";
import { SessionList } from "./sessions/list.tsx";
import { SessionPage } from "./sessions/session.tsx";

export default function Sessions({ place }: { readonly place: Place }) {
  return place.id === "" ? (
    <SessionList agentId={place.query.agent ?? ""} />
  ) : (
    <SessionPage key={place.id} id={place.id} />
  );
}
