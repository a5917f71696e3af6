export { type Refusal, refusal } from "@depute/service/testing";
