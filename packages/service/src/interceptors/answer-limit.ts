import type { Interceptor } from "@connectrpc/connect";
import { bytesOf, checkAnswer, countElements } from "../answer-limit.ts";
import { answerCheckedKey, inProcessKey } from "../call-values.ts";

/**
 * Refuses answers of several elements that stock clients could not read. The fast path checks what it has written itself;
 * a call within the process crosses no wire.
 */
export function answerLimitInterceptor(): Interceptor {
  return (next) => async (request) => {
    const response = await next(request);
    const { contextValues } = request;
    if (response.stream || contextValues.get(answerCheckedKey) || contextValues.get(inProcessKey))
      return response;
    const { method, message } = response;
    if (countElements(method.output, message) > 1)
      checkAnswer(method, message, bytesOf(method.output, message));
    return response;
  };
}
