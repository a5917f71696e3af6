export { WireContractError, WireEncodeError } from "./codec.ts";
export { MAX_ECHO, pointer, quote, type Step, type WireError, type WireReason } from "./error.ts";
export { checkJson, MAX_BYTES, type Parsed, type ParseLimits, parseJson } from "./parse.ts";
export { refusalOf } from "./refusal.ts";
export { type DecodedValid, decodeValid, MAX_ERRORS, wirePath } from "./valid.ts";
export { type Decoded, type DecodeLimits, decode, encode, MAX_DEPTH } from "./wire.ts";
