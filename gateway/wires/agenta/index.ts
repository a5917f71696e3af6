export { AGENTA_MESSAGES, type AgentaMessage, readDocument, schemaFile } from "./documents.ts";
export { type AgentaFault, type AgentaValidation, compileAgenta, type ValidateAgenta } from "./validate.ts";
