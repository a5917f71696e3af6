import { expect, it, vi } from "vitest";
import { SignedCards } from "./signed-cards.ts";

const signer = () => ({ kid: "key", sign: vi.fn((message: Uint8Array) => message.slice(0, 64)) });

it("signs a card once while its content stays the same", () => {
  const key = signer();
  const cards = new SignedCards(key);
  const first = cards.sign({ name: "a" });
  expect(cards.sign({ name: "a" })).toEqual(first);
  expect(key.sign).toHaveBeenCalledTimes(1);
  expect(cards.sign({ name: "b" })).not.toEqual(first);
  expect(key.sign).toHaveBeenCalledTimes(2);
});

it("keeps 256 cards, and none of more than 16,384 characters", () => {
  const key = signer();
  const cards = new SignedCards(key);
  for (let i = 0; i <= 256; i++) cards.sign({ name: String(i) });
  cards.sign({ name: "256" });
  expect(key.sign).toHaveBeenCalledTimes(257);
  cards.sign({ name: "0" });
  expect(key.sign).toHaveBeenCalledTimes(258);
  const long = { name: "x".repeat(16 * 1024) };
  cards.sign(long);
  cards.sign(long);
  expect(key.sign).toHaveBeenCalledTimes(260);
});
