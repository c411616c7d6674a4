/**
 * The step that calls agents. It may run twice, even beside a slow earlier attempt: the agent gets the same idempotency
 * key, and the first recorded answer stays. The answer goes into Postgres and not through Temporal, whose histories
 * keep everything that passes through them.
 */
import { ApplicationFailure, Context } from '@temporalio/activity';
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
}

export type InvocationAttemptActivities = ReturnType<typeof createInvocationAttemptActivities>;

export function createInvocationAttemptActivities(deps: InvocationAttemptDeps) {
  return {
    /** Makes one attempt. Throws if another one should follow; otherwise the invocation has ended. */
    async callAgent(invocationId: string): Promise<InvocationView> {
      const id = rowIdOf('invocation', invocationId);
      const call = await beginAttempt(deps.database, id);
      if (call) await attempt(deps, id, invocationId, call);
      return viewOf(await findInvocation(deps.database, id));
    },
  };
}

async function attempt(
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
