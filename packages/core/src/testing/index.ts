export { messagesOf } from "./message-arbitraries.ts";
export { ownContracts } from "./own-contracts.ts";
