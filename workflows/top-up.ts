/**
 * A top-up, from the request to its last state, and again whenever it is refunded or disputed after that.
 * Remembers which step comes next; Postgres decides whether a step takes effect, and the processor alone
 * says whether money came. Each run begins by reading the row, so that a run which follows another, ended
 * or terminated, repeats nothing.
 */
import {
  ActivityFailure,
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  proxyActivities,
  rootCause,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { LedgerActivities } from '../activities/ledger.ts';
import type { ProcessorActivities } from '../activities/processor.ts';
import type { ReversalActivities } from '../activities/reversals.ts';
import type { AutoTopUpState } from '../src/domain/top-up.ts';
import type { Verdict } from '../src/domain/verdict.ts';
import * as messages from './messages.ts';
import type { Stuck, TopUpInput, TopUpProgress, TopUpView, WaitingFor } from './messages.ts';
import { display } from './top-up-display.ts';

type Step =
  | 'open'
  | 'openCheckout'
  | 'chargeCard'
  | 'wait'
  | 'ask'
  | 'cancel'
  | 'credit'
  | 'settle'
  | 'expire'
  | 'fail'
  | 'end';

interface Run {
  readonly topUpId: string;
  status: TopUpView['status'];
  sessionUrl: string | null;
  failure: TopUpView['failure'];
  /** After an automatic top-up failed: what becomes of the next ones. */
  autoTopUp: AutoTopUpState | null;
  consumerId: string | undefined;
  amountDollars: number | undefined;
  heldDollars: number;
  debtDollars: number;
  waitingFor: WaitingFor | null;
  stuck: Stuck | null;
  /** How long to wait for a report before asking the processor unprompted; doubles. */
  askAfterMs: number;
  /** Steps in a row that used up their attempts. */
  failures: number;
  /** Waiting for a report, a timer or an operator; no step is under way. */
  resting: boolean;
  nudged: boolean;
  /** Refunds and disputes are to be settled as soon as it is credited. */
  reversalReported: boolean;
  retryAsked: boolean;
  cancelAsked: boolean;
  ended: boolean;
}

const ASK_INTERVAL_MS_MAX = 3_600_000;
/** After a step has used up its attempts: 10 s, then doubling up to the maximum. */
const STUCK_INTERVAL_MS_MIN = 10_000;
const STUCK_INTERVAL_MS_MAX = 600_000;
/** Steps at which it is still open whether money comes. */
const CANCELLABLE: ReadonlySet<Step> = new Set([
  'openCheckout',
  'chargeCard',
  'wait',
  'ask',
  'cancel',
]);

type Activities = LedgerActivities & ProcessorActivities & ReversalActivities;

function activities(summary: string): Activities {
  return proxyActivities<Activities>({
    startToCloseTimeout: '15s',
    // Every step says each second that it is alive (src/temporal/heartbeat.ts): a killed worker costs this.
    heartbeatTimeout: '5s',
    // A workflow does not see its activities' retries, so they are few and then `Stuck` is shown.
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumAttempts: 5 },
    summary,
  });
}

export async function topUp(input: TopUpInput): Promise<TopUpView> {
  const run = newRun(input);
  listen(run);
  // "Request Cancellation" in the UI is the same orderly end as the update `cancel`.
  CancellationScope.current().cancelRequested.catch(() => (run.cancelAsked = true));
  return CancellationScope.nonCancellable(async () => {
    let step: Step = 'open';
    for (;;) {
      while (step !== 'end') {
        if (run.cancelAsked && CANCELLABLE.has(step)) step = 'cancel';
        if (step !== 'cancel' && historyIsLong(run)) {
          const reversalReported = run.reversalReported || step === 'settle';
          await continueAsNew<typeof topUp>(
            reversalReported ? { ...input, reversalReported } : input,
          );
        }
        step = await attempt(run, step);
      }
      run.ended = true;
      run.waitingFor = null;
      display(run);
      await condition(allHandlersFinished);
      const unread = mustSettle(run) ? 'settle' : mayHaveBeenPaid(run) ? 'ask' : undefined;
      if (unread === undefined) return viewOf(run);
      run.ended = false;
      run.nudged = false;
      step = unread;
    }
  });
}

/** A report came while an expired or failed top-up was ending. */
function mayHaveBeenPaid(run: Run): boolean {
  return run.nudged && (run.status === 'expired' || run.status === 'failed');
}

/** Whatever was reported of refunds and disputes, it waits until there is a credit to take from. */
function mustSettle({ reversalReported, status }: Run): boolean {
  return reversalReported && !['pending', 'expired', 'failed', 'withdrawn'].includes(status);
}

function historyIsLong(run: Run): boolean {
  return workflowInfo().continueAsNewSuggested && !run.nudged && allHandlersFinished();
}

/** Takes a step and returns the next one: the same again, after a while, when it failed. */
async function attempt(run: Run, step: Exclude<Step, 'end'>): Promise<Step> {
  try {
    const next = await STEPS[step](run);
    run.failures = 0;
    run.stuck = null;
    return next;
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    becomeStuck(run, step, error);
    const retryAfterMs = retryAfterMsOf(error);
    if (retryAfterMs > 0) await sleep(retryAfterMs, { summary: 'As the processor asks' });
    const intervalMs = STUCK_INTERVAL_MS_MIN * 2 ** (run.failures - 1);
    await pause(run, step, Math.min(intervalMs, STUCK_INTERVAL_MS_MAX), `Try ${step} again`);
    return step;
  }
}

const STEPS: Readonly<Record<Exclude<Step, 'end'>, (run: Run) => Promise<Step>>> = {
  async open(run) {
    const opened = await activities('Take up the top-up').openTopUp(run.topUpId);
    if (opened === null) {
      run.status = 'withdrawn';
      return 'end';
    }
    run.status = opened.status;
    run.sessionUrl = opened.sessionUrl;
    run.failure = opened.failure;
    run.consumerId = opened.consumerId;
    run.amountDollars = opened.amountDollars;
    run.askAfterMs = opened.firstAskMs;
    display(run);
    if (opened.status === 'expired' || opened.status === 'failed') return 'ask';
    if (opened.status !== 'pending') return mustSettle(run) ? 'settle' : 'end';
    if (opened.method === 'direct') return 'chargeCard';
    // Asked at once in a later run: what was reported to the one before may not have been acted on.
    return opened.sessionUrl === null ? 'openCheckout' : 'ask';
  },

  async openCheckout(run) {
    run.sessionUrl = await activities('Open a checkout session').openCheckout(run.topUpId);
    return 'wait';
  },

  async chargeCard(run) {
    const verdict = await activities('Charge the saved card').chargeSavedCard(run.topUpId);
    return following(run, verdict);
  },

  async wait(run) {
    run.waitingFor = 'payment';
    display(run);
    const woken = await pause(run, 'wait', run.askAfterMs, 'Wait for a report of the payment');
    if (!woken) run.askAfterMs = Math.min(run.askAfterMs * 2, ASK_INTERVAL_MS_MAX);
    return 'ask';
  },

  async ask(run) {
    run.nudged = false; // whatever was reported until now, this asks about
    return following(run, await activities('Ask the processor').askProcessor(run.topUpId));
  },

  async cancel(run) {
    run.cancelAsked = false;
    const verdict = await activities('Cancel the payment').cancelPayment(run.topUpId);
    return following(run, verdict);
  },

  async credit(run) {
    await activities(`Credit ${run.amountDollars} dollars`).creditTopUp(run.topUpId);
    run.status = 'completed';
    run.failure = null;
    return mustSettle(run) ? 'settle' : 'end';
  },

  async settle(run) {
    run.reversalReported = false; // whatever was reported until now, this reads
    run.waitingFor = 'processor';
    const settled = await activities('Settle refunds and disputes').settleTopUp(run.topUpId);
    run.status = settled.status;
    run.heldDollars = settled.heldDollars;
    run.debtDollars = settled.debtDollars;
    return 'end';
  },

  async expire(run) {
    await activities('Record that it expired').expireTopUp(run.topUpId);
    run.status = 'expired';
    return 'end';
  },

  async fail(run) {
    if (run.failure === null) throw new Error('a failed top-up has a reason');
    const { failure } = run;
    run.autoTopUp = await activities('Record that it failed').failTopUp(run.topUpId, failure);
    run.status = 'failed';
    return 'end';
  },
};

/** What the processor says decides. An ended top-up changes only by turning out to be paid. */
function following(run: Run, verdict: Verdict): Step {
  if (verdict.kind === 'paid') {
    if (verdict.isReversed) run.reversalReported = true;
    return 'credit';
  }
  if (run.status !== 'pending') return 'end';
  switch (verdict.kind) {
    case 'open':
      return 'wait';
    case 'expired':
      return 'expire';
    case 'failed':
      run.failure = verdict.failure;
      return 'fail';
  }
}

/** How long the processor asks to be left alone, whoever wants it sooner; 0 when it does not. */
function retryAfterMsOf({ cause }: ActivityFailure): number {
  const [detail] = cause instanceof ApplicationFailure ? (cause.details ?? []) : [];
  return (detail as { readonly retryAfterMs?: number } | undefined)?.retryAfterMs ?? 0;
}

/** Returns early, with true, when anything was said to the workflow; what was said counts as read. */
async function pause(run: Run, step: Step, timeoutMs: number, summary: string): Promise<boolean> {
  run.resting = true;
  const woken = await condition(
    () => run.nudged || run.retryAsked || (run.cancelAsked && CANCELLABLE.has(step)),
    timeoutMs,
    { summary },
  );
  run.resting = false;
  run.nudged = false;
  run.retryAsked = false;
  return woken;
}

function becomeStuck(run: Run, step: Step, error: ActivityFailure): void {
  const cause = error.cause;
  const mismatch = cause instanceof ApplicationFailure && cause.type === 'payment_mismatch';
  const inDatabase = ['open', 'credit', 'expire', 'fail'].includes(step);
  run.failures += 1;
  run.waitingFor = mismatch ? 'operator' : inDatabase ? 'database' : 'processor';
  run.stuck = {
    step,
    since: run.stuck?.since ?? new Date().toISOString(),
    message: rootCause(error) ?? error.message,
  };
  display(run);
}

function listen(run: Run): void {
  setHandler(messages.paymentReported, () => void (run.nudged = true), {
    description: 'Something was reported about the payment: ask the processor now.',
  });
  setHandler(
    messages.reversalReported,
    () => {
      run.reversalReported = true;
      run.nudged = true; // it was paid, then
    },
    { description: 'A refund or dispute was reported or asked for: settle it now.' },
  );
  setHandler(
    messages.sessionUrl,
    async () => {
      await condition(() => run.sessionUrl !== null || run.ended || run.stuck !== null);
      return viewOf(run);
    },
    { description: 'Answers when the checkout can be paid, or cannot be for now.' },
  );
  setHandler(
    messages.outcome,
    async () => {
      await condition(() => run.ended || run.stuck !== null);
      return viewOf(run);
    },
    { description: 'Answers when the top-up has ended, or is stuck.' },
  );
  setHandler(
    messages.retry,
    async () => {
      run.retryAsked = true;
      await condition(() => run.ended || (!run.retryAsked && run.resting));
      return progressOf(run);
    },
    { description: 'For operators: tries the step that fails, or asks the processor, now.' },
  );
  setHandler(
    messages.cancel,
    async () => {
      run.cancelAsked = true;
      await condition(() => run.ended || (!run.cancelAsked && run.resting));
      return progressOf(run);
    },
    {
      description:
        'For operators: closes the payment at the processor and ends the top-up, unless it was paid.',
    },
  );
  setHandler(messages.status, () => progressOf(run), {
    description: 'The status, what it waits for, and why it is stuck if it is.',
  });
}

function newRun({ topUpId, reversalReported = false }: TopUpInput): Run {
  return {
    topUpId,
    status: 'pending',
    sessionUrl: null,
    failure: null,
    autoTopUp: null,
    consumerId: undefined,
    amountDollars: undefined,
    heldDollars: 0,
    debtDollars: 0,
    waitingFor: 'processor',
    stuck: null,
    askAfterMs: ASK_INTERVAL_MS_MAX,
    failures: 0,
    resting: false,
    nudged: false,
    reversalReported,
    retryAsked: false,
    cancelAsked: false,
    ended: false,
  };
}

function viewOf({ status, sessionUrl, failure }: Run): TopUpView {
  return { status, sessionUrl, failure };
}

function progressOf(run: Run): TopUpProgress {
  const { heldDollars, debtDollars, waitingFor, stuck } = run;
  return { ...viewOf(run), heldDollars, debtDollars, waitingFor, stuck };
}
