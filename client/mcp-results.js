/**
 * Decides which results of MCP tools are paid for: not failures, requests for input, or results that only
 * begin a task.
 */

/** It failed, or it asks for input first: the call that brings the input is the one that is paid for. */
export function isUnfinished({ isError, resultType }) {
  return isError === true || resultType === 'input_required';
}

/**
 * Refuses a call that asks for a task. Version 1 of the SDK runs even a tool that makes no task, and then
 * answers with a protocol error instead of the result.
 */
export function checkCall(options, { taskRequestedTtl }) {
  if (typeof taskRequestedTtl === 'number') throw noTasks(options);
}

/**
 * Returns the result, unless it cannot be sent, or only announces a task, whose own result comes later and
 * elsewhere, and may be an error.
 */
export function checkResult(options, result) {
  checkJson(options, result);
  const { resultType = 'complete', content, task } = result;
  const isTask =
    resultType === 'complete'
      ? content === undefined && task !== undefined
      : resultType !== 'input_required';
  if (isTask) throw noTasks(options);
  return result;
}

/** The SDK would send no answer, or one that no client accepts. */
function checkJson({ tool }, result) {
  const message = `Farebox: the result of "${tool}" is not an object that can be serialized as JSON; nothing was charged`;
  let json;
  try {
    json = JSON.stringify(result);
  } catch (cause) {
    throw new TypeError(message, { cause });
  }
  if (!json?.startsWith('{')) throw new TypeError(message);
}

/** The developer's mistake, which shows at the first call. */
function noTasks({ tool }) {
  return new TypeError(
    `Farebox: paidTool cannot bill "${tool}" as a task; nothing was charged. Place a hold when the task begins, ` +
      'and capture it when the task has its result',
  );
}
