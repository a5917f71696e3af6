import fc from "fast-check";
import { expect, it } from "vitest";
import { PlaceOrder } from "./place-order.ts";

it("ranks tell the order, also of many that come in one place", () => {
  // Ordinals from 0 on, at these places.
  fc.assert(
    fc.property(fc.uniqueArray(fc.double({ noNaN: true }), { maxLength: 200 }), (places) => {
      const order = new PlaceOrder((a, b) => (places[a] as number) - (places[b] as number));
      for (const ordinal of places.keys()) order.add(ordinal);
      const byRank = [...places.keys()].sort((a, b) => order.rank(a) - order.rank(b));
      expect(byRank.map((ordinal) => places[ordinal])).toEqual([...places].sort((a, b) => a - b));
    }),
  );
  const order = new PlaceOrder((a, b) => a - b);
  order.add(1_000_000);
  for (let i = 0; i < 5_000; i++) order.add(i);
  for (let i = 1; i < 5_000; i++) expect(order.rank(i)).toBeGreaterThan(order.rank(i - 1));
  expect(order.rank(1_000_000)).toBeGreaterThan(order.rank(4_999));
});
