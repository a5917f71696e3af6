import { decodeBase64Url, isObject } from "@depute/core";
import { type DenialType, deny } from "./denial.ts";
import { SIGNATURE_BYTES } from "./engine/encodings.ts";
import { type IdKind, type IdRule, isId } from "./ids.ts";
import { isPrincipalId } from "./principal.ts";
import { parseTime } from "./time.ts";

/**
 * A description of a JSON value that also checks it: returns, or throws TokenError with the path and what is wrong.
 * Paths are made of this package's own names, so that nothing of the sender's text comes back to him.
 */
export type Shape = (value: unknown, path: string, rules: ShapeRules) => void;

export interface ShapeRules {
  readonly ids: IdRule;
}

/** An object with exactly these members: nothing missing, nothing unknown, null nowhere. */
export function object(required: Record<string, Shape>, optional: Record<string, Shape> = {}): Shape {
  const members = new Map([...Object.entries(required), ...Object.entries(optional)]);
  const needed = Object.keys(required);
  return (value, path, rules) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) malformed(path, "not an object");
    for (const key of Object.keys(value)) if (!members.has(key)) malformed(path, "unknown member");
    for (const key of needed) if (!Object.hasOwn(value, key)) malformed(join(path, key), "missing");
    for (const [key, shape] of members) {
      if (Object.hasOwn(value, key)) shape((value as Record<string, unknown>)[key], join(path, key), rules);
    }
  };
}

/** An array of at most `max` items; one that is longer is `tooLong`. */
export function array(item: Shape, max: number, tooLong: DenialType = "malformed_token"): Shape {
  return (value, path, rules) => {
    if (!Array.isArray(value)) malformed(path, "not an array");
    if (value.length > max) deny(tooLong, `${path}: more than ${max} items`);
    for (const [i, member] of value.entries()) item(member, `${path}[${i}]`, rules);
  };
}

/** A value for which `accepts` holds. */
export function that(problem: string, accepts: (value: unknown) => boolean): Shape {
  return (value, path) => {
    if (!accepts(value)) malformed(path, problem);
  };
}

/** Text of at most `max` UTF-16 code units, without lone surrogates. */
export function text(max: number): Shape {
  return that(`not a text of at most ${max} characters`, (value) => {
    return typeof value === "string" && value.length <= max && value.isWellFormed();
  });
}

/** One of a few words. */
export function oneOf(...words: readonly string[]): Shape {
  return that(`not ${words.join(" or ")}`, (value) => typeof value === "string" && words.includes(value));
}

/** An identifier of a kind, by the rule in force. */
export function id(kind: IdKind): Shape {
  return (value, path, rules) => {
    if (!isId(kind, value, rules.ids)) malformed(path, `not a ${kind}_ identifier`);
  };
}

export const principal = that("not a principal", isPrincipalId);

/** An integer from 0 to 2^53 - 1: JSON has no other that every reader reads alike. */
export const count = that("not an integer from 0 to 2^53-1", isCount);

export const time = that("not a time YYYY-MM-DDTHH:MM:SS(.sss)Z", (value) => parseTime(value) !== undefined);

export const signature = that("not a signature", (value) => {
  return (
    typeof value === "string" && value.length === 86 && decodeBase64Url(value)?.length === SIGNATURE_BYTES
  );
});

export const digest = that("not a digest", (value) => {
  return typeof value === "string" && value.length === 43 && decodeBase64Url(value) !== undefined;
});

export const bool = that("not a boolean", (value) => typeof value === "boolean");

/** Any object, its members unread. */
export const anyObject = that("not an object", isObject);

/** Whether a value is an integer from 0 to 2^53 - 1. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function malformed(path: string, problem: string): never {
  deny("malformed_token", path === "" ? problem : `${path}: ${problem}`);
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
