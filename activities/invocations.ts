/** The steps of an invocation that write to Postgres. Each may run twice: conditions on the row decide. */
import { ApplicationFailure } from '@temporalio/activity';
import {
  INVOCATION_ERRORS,
  type InvocationErrorCode,
  type InvocationView,
} from '../src/domain/invocation.ts';
import type { Database } from '../src/store/database.ts';
import {
  beginInvocation,
  failInvocation,
  findInvocation,
  type Invocation,
} from '../src/store/agents/invocations.ts';
import { rowIdOf } from './row-id.ts';

export interface InvocationDeps {
  readonly database: Database;
  /** How long after its creation an invocation is given up. */
  readonly deadlineMs: number;
  /** How long one attempt may take. */
  readonly attemptTimeoutMs: number;
}

/** The state of an invocation for its workflow. No personal data, since histories keep it. */
export interface BegunInvocation extends InvocationView {
  /** Time left until it is given up; negative when overdue. */
  readonly deadlineInMs: number;
  readonly attemptTimeoutMs: number;
}

export type InvocationActivities = ReturnType<typeof createInvocationActivities>;

export function createInvocationActivities(deps: InvocationDeps) {
  const { database, deadlineMs, attemptTimeoutMs } = deps;
  const deadlineInMsOf = (invocation: Invocation | null) =>
    deadlineMs - (invocation?.ageMs ?? Number.NaN);
  return {
    async beginInvocation(invocationId: string): Promise<BegunInvocation> {
      const invocation = await beginInvocation(database, rowIdOf('invocation', invocationId));
      return {
        ...viewOf(invocation),
        deadlineInMs: deadlineInMsOf(invocation),
        attemptTimeoutMs,
      };
    },

    /**
     * Ends the invocation as failed unless it has already ended, and returns its state. Checks the deadline itself
     * instead of trusting the caller. An operator's cancellation has no other evidence than the caller.
     */
    async giveUpInvocation(
      invocationId: string,
      code: Extract<InvocationErrorCode, 'deadline_exceeded' | 'canceled'>,
    ): Promise<InvocationView> {
      const id = rowIdOf('invocation', invocationId);
      const invocation = await findInvocation(database, id);
      if (code !== 'canceled' && deadlineInMsOf(invocation) > 0) {
        throw ApplicationFailure.retryable('the deadline has not passed', 'not_due');
      }
      const last = invocation?.errorMessage;
      const met = last ? ` The last attempt failed: ${last}` : '';
      const ended = code === 'canceled' ? code : 'deadline_exceeded';
      await failInvocation(database, id, {
        code: ended,
        message: INVOCATION_ERRORS[ended] + met,
      });
      return viewOf(await findInvocation(database, id));
    },
  };
}

/** Without the agent's own error message, which histories must not keep. */
export function viewOf(invocation: Invocation | null): InvocationView {
  if (!invocation) throw ApplicationFailure.nonRetryable('invocation not found', 'not_found');
  const { status, attempts, errorCode } = invocation;
  const error = errorCode && { code: errorCode, message: INVOCATION_ERRORS[errorCode] };
  return { status, attempts, error };
}
