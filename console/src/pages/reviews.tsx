import type { Place } from "../rules/route.ts";
import { Inbox } from "./reviews/inbox.tsx";
import { ReviewPage } from "./reviews/review.tsx";

export default function Reviews({ place }: { readonly place: Place }) {
  return place.id === "" ? <Inbox query={place.query} /> : <ReviewPage key={place.id} id={place.id} />;
}
