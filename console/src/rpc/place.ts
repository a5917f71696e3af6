import { useSyncExternalStore } from "react";
import { hashOf, type Place, placeOf } from "../rules/route.ts";

let lastHash = "";
let lastPlace: Place = placeOf("");

/**
 * Returns the page, object and filters that the browser's address names. The calling component renders again when they
 * change.
 */
export function usePlace(): Place {
  return useSyncExternalStore(
    (changed) => {
      addEventListener("hashchange", changed);
      return () => removeEventListener("hashchange", changed);
    },
    () => {
      if (location.hash !== lastHash) {
        lastHash = location.hash;
        lastPlace = placeOf(lastHash);
      }
      return lastPlace;
    },
  );
}

/**
 * Changes the browser's address to another page, object or filters. With `replace`, the new address replaces the
 * current entry of the browser's history, as for a change of filters.
 */
export function goTo(place: Parameters<typeof hashOf>[0], how: "push" | "replace" = "push"): void {
  if (how === "push") location.hash = hashOf(place);
  else location.replace(hashOf(place));
}
