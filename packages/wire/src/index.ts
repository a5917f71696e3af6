export { WireContractError, WireEncodeError } from "./codec.ts";
export { MAX_ECHO, pointer, quote, type Step, type WireError, type WireReason } from "./error.ts";
export { refusalOf } from "./refusal.ts";
export {
  checkJson,
  type Decoded,
  type DecodedValid,
  type DecodeLimits,
  decode,
  decodeValid,
  encode,
  MAX_BYTES,
  MAX_DEPTH,
  MAX_ERRORS,
  type Parsed,
  type ParseLimits,
  parseJson,
  wirePath,
} from "./wire.ts";
