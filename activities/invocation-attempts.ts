/**
 * The step that calls agents. It may run twice, even beside a slow earlier attempt: the agent gets the same idempotency
 * key, and the first recorded answer stays. The answer goes into Postgres and not through Temporal, whose histories
 * keep everything that passes through them.
 */
import { ApplicationFailure, Context } from '@temporalio/activity';
import type { AgentAnswer, AgentRequest, NoteTask } from '../src/agents/adapter.ts';
import type { SharedPlaces } from '../src/domain/shared-places.ts';
import { CUT_OFF, type AgentTask, type InvocationView } from '../src/domain/invocation.ts';
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
import { beatWith } from './heartbeat.ts';
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

/** A failed attempt that took longer kept its place from others. One that failed sooner did not. */
const HUNG_AFTER_MS = 5_000;

export type InvocationAttemptActivities = ReturnType<typeof createInvocationAttemptActivities>;

export function createInvocationAttemptActivities(deps: InvocationAttemptDeps) {
  return {
    /**
     * Makes one attempt. Throws if another one should follow; otherwise the invocation has ended. Null: the account's
     * calls hold its share of the places, and nothing was done. `task`: what an earlier attempt began at the agent.
     */
    async callAgent(invocationId: string, task?: AgentTask): Promise<InvocationView | null> {
      const id = rowIdOf('invocation', invocationId);
      const { database, places } = deps;
      const invocation = await findInvocation(database, id);
      if (!invocation) return viewOf(invocation);
      const { accountId } = invocation;
      if (!places.take(accountId)) return null;
      const takenAtMs = performance.now();
      let isAnswered = false;
      try {
        const view = await attempt(deps, id, { invocationId, task });
        isAnswered = true;
        return view;
      } finally {
        const hung = !isAnswered && performance.now() - takenAtMs > HUNG_AFTER_MS;
        places.giveBack(accountId, { hung });
      }
    },

    /** The same beyond that share, on the task queue of such calls. */
    callAgentBeyondShare(invocationId: string, task?: AgentTask): Promise<InvocationView> {
      return attempt(deps, rowIdOf('invocation', invocationId), { invocationId, task });
    },
  };
}

type Asked = Pick<AgentRequest, 'invocationId' | 'task'>;

async function attempt(
  deps: InvocationAttemptDeps,
  id: string,
  asked: Asked,
): Promise<InvocationView> {
  const call = await beginAttempt(deps.database, id);
  if (call) await make(deps, id, { ...asked, ...call });
  return viewOf(await findInvocation(deps.database, id));
}

/** A task that the agent begins goes to the workflow with any failure, or with the heartbeats if this process dies. */
async function make(
  deps: InvocationAttemptDeps,
  id: string,
  request: Asked & AgentCall,
): Promise<void> {
  let task: AgentTask | undefined;
  const noteTask = (begun: AgentTask) => {
    task = begun;
    beatWith({ task });
  };
  try {
    await record(deps, id, await answerOf(deps, request, noteTask));
  } catch (error) {
    if (!task) throw error;
    const failure = ApplicationFailure.fromError(error);
    const [details] = failure.details ?? [];
    throw ApplicationFailure.fromError(failure, { details: [{ ...(details as object), task }] });
  }
}

async function answerOf(
  { allowPrivate, timeoutMs }: InvocationAttemptDeps,
  { payloadText, ...call }: Asked & AgentCall,
  noteTask: NoteTask,
): Promise<AgentAnswer> {
  // Loaded by the first call: the protocols' libraries would slow down every start of a worker.
  const { callAgent } = await import('../src/agents/call.ts');
  const signal = AbortSignal.any([
    AbortSignal.timeout(timeoutMs),
    Context.current().cancellationSignal,
  ]);
  const payload = JSON.parse(payloadText) as Record<string, unknown>;
  return callAgent({ ...call, payload }, { allowPrivate, signal, noteTask });
}

async function record(
  { database }: InvocationAttemptDeps,
  id: string,
  answer: AgentAnswer,
): Promise<void> {
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
