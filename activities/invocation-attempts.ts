/**
 * The step that calls agents. It may run twice, even beside a slow earlier attempt: the agent gets the same idempotency
 * key, and the first recorded answer stays. The answer goes into Postgres and not through Temporal, whose histories
 * keep everything that passes through them.
 */
import { ApplicationFailure, Context } from '@temporalio/activity';
import type { SharedPlaces } from '../src/agents/shared-places.ts';
import { CUT_OFF, type InvocationView } from '../src/domain/invocation.ts';
import type { Database } from '../src/store/database.ts';
import {
  beginAttempt,
  failInvocation,
  findInvocation,
  recordFailedAttempt,
  recordResult,
  withdrawAttempt,
  type AgentCall,
} from '../src/store/agents/invocations.ts';
import { viewOf } from './invocations.ts';
import { rowIdOf } from './row-id.ts';

export interface InvocationAttemptDeps {
  readonly database: Database;
  /** Whether agents may have loopback and private addresses. */
  readonly allowPrivate: boolean;
  /** How long one attempt may take. */
  readonly timeoutMs: number;
  /** For the calls of accounts within their share. */
  readonly places: SharedPlaces;
}

export type InvocationAttemptActivities = ReturnType<typeof createInvocationAttemptActivities>;

export function createInvocationAttemptActivities(deps: InvocationAttemptDeps) {
  return {
    /**
     * Makes one attempt. Throws if another one should follow; otherwise the invocation has ended. Null: the account's
     * calls hold its share of the places, and nothing was done.
     */
    async callAgent(invocationId: string): Promise<InvocationView | null> {
      const id = rowIdOf('invocation', invocationId);
      const { database, places } = deps;
      const invocation = await findInvocation(database, id);
      if (!invocation) return viewOf(invocation);
      const { accountId } = invocation;
      if (!places.take(accountId)) return null;
      try {
        return await attempt(deps, id, invocationId);
      } finally {
        places.giveBack(accountId);
      }
    },

    /** The same beyond that share, on the task queue of such calls. */
    callAgentBeyondShare(invocationId: string): Promise<InvocationView> {
      return attempt(deps, rowIdOf('invocation', invocationId), invocationId);
    },
  };
}

async function attempt(
  deps: InvocationAttemptDeps,
  id: string,
  invocationId: string,
): Promise<InvocationView> {
  const call = await beginAttempt(deps.database, id);
  if (call) await make(deps, id, invocationId, call);
  return viewOf(await findInvocation(deps.database, id));
}

async function make(
  { database, allowPrivate, timeoutMs }: InvocationAttemptDeps,
  id: string,
  invocationId: string,
  { payloadText, ...call }: AgentCall,
): Promise<void> {
  // Loaded by the first call: the protocols' libraries would slow down every start of a worker.
  const { callAgent } = await import('../src/agents/call.ts');
  const signal = AbortSignal.any([
    AbortSignal.timeout(timeoutMs),
    Context.current().cancellationSignal,
  ]);
  const payload = JSON.parse(payloadText) as Record<string, unknown>;
  const answer = await callAgent({ ...call, payload, invocationId }, { allowPrivate, signal });
  switch (answer.kind) {
    case 'answered':
      return recordResult(database, id, JSON.stringify(answer.value));
    case 'failed':
      return failInvocation(database, id, answer.error);
    case 'unavailable':
      if (Context.current().cancellationDetails?.workerShutdown) {
        await withdrawAttempt(database, id);
        throw ApplicationFailure.create({ type: CUT_OFF, message: 'The worker stopped.' });
      }
      await recordFailedAttempt(database, id, answer.error);
      throw ApplicationFailure.create({
        type: answer.error.code,
        message: answer.error.message,
        details: [{ retryAfterMs: answer.retryAfterMs }],
      });
  }
}
