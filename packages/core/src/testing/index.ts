export { messagesOf } from "./message-arbitraries.ts";
export { ownContracts } from "./own-contracts.ts";
export { type Tampered, tampered } from "./tampered.ts";
