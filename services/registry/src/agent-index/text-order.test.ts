import fc from "fast-check";
import { expect, it } from "vitest";
import { compareText } from "./text-order.ts";

it("is the order of the UTF-8 bytes", () => {
  const letter = fc.constantFrom("a", "b", "é", "\ud7ff", "\ue000", "\uffff", "𐀀", "😀");
  const text = fc.array(letter, { maxLength: 4 }).map((letters) => letters.join(""));
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(Math.sign(compareText(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
  );
});
