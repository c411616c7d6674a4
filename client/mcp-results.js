/** Which results of MCP tools are paid for: not those that failed, that ask for input, or that only begin a task. */

/** It failed, or it asks for input first: the call that brings the input is the one that is paid for. */
export function isUnfinished({ isError, resultType }) {
  return isError === true || resultType === 'input_required';
}

/**
 * A call that asks for a task. Version 1 of the SDK also runs a tool that makes none, and then answers with a protocol
 * error, not with its result.
 */
export function checkCall(options, { taskRequestedTtl }) {
  if (typeof taskRequestedTtl === 'number') throw noTasks(options);
}

/** Gives the result, unless it only tells of a task, whose own result comes later and elsewhere, and may be an error. */
export function checkResult(options, result) {
  const { resultType = 'complete', content, task } = result;
  const isTask =
    resultType === 'complete'
      ? content === undefined && task !== undefined
      : resultType !== 'input_required';
  if (isTask) throw noTasks(options);
  return result;
}

/** A mistake of the developer, who sees it at the first call. */
function noTasks({ tool }) {
  return new TypeError(
    `Farebox: paidTool cannot pay for "${tool}" as a task; nothing was charged. Place a hold when the task begins, ` +
      'and capture it when the task has its result',
  );
}
