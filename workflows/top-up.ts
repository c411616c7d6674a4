/**
 * A top-up, from the request to its final state, and again whenever it is refunded or disputed after that. The workflow
 * remembers the next step; Postgres decides whether a step takes effect, and only the processor says whether it was
 * paid. Each run begins by reading the row, so that a run after one that ended or was terminated repeats nothing.
 */
import {
  type ActivityFailure,
  condition,
  continueAsNew,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { TopUpActivities, ClaimedTopUp } from '../activities/top-ups.ts';
import type { OpenedCheckout, TopUpPaymentActivities } from '../activities/top-up-payments.ts';
import type { TopUpReversalActivities } from '../activities/top-up-reversals.ts';
import { jittered } from '../src/domain/retries.ts';
import type { AutoTopUpState } from '../src/domain/top-up.ts';
import { stripeTaskQueue } from '../src/domain/task-queues.ts';
import type { Verdict } from '../src/domain/verdict.ts';
import * as messages from './messages.ts';
import type { TopUpInput, TopUpProgress, TopUpView } from './messages.ts';
import { retryAfterMsOf, Steps } from './steps.ts';
import { display } from './top-up-display.ts';
import { ASK_FACTOR, ASK_MS_MAX, RETRY_MS_MAX } from './top-up-intervals.ts';

interface Run {
  readonly topUpId: string;
  readonly steps: Steps;
  status: TopUpView['status'];
  method: ClaimedTopUp['method'] | undefined;
  sessionUrl: string | null;
  sessionId: string | null;
  paymentIntentId: string | null;
  /** The URL of the processor's dashboard; null if it has none. */
  dashboardUrl: string | null;
  failure: TopUpView['failure'];
  /** After an automatic top-up failed: the state of automatic top-ups. */
  autoTopUp: AutoTopUpState | null;
  consumerId: string | undefined;
  amountDollars: number | undefined;
  heldDollars: number;
  debtDollars: number;
  /** The bank wants the cardholder to confirm the payment. */
  needsPayer: boolean;
  /** How long to wait for a report before asking the processor; grows. */
  askAfterMs: number;
  /** Refunds and disputes must be read once it is credited. */
  reversalReported: boolean;
}

/** The first wait after a step has used up its attempts. It doubles up to the maximum. */
const RETRY_MS_MIN = 10_000;

const STEP = {
  startToCloseTimeout: '15s',
  // Every step sends a heartbeat each second (src/temporal/heartbeat.ts), so a killed worker costs 5 s.
  heartbeatTimeout: '5s',
  // A workflow does not see its activities' retries, so there are only a few before it shows `Stuck`.
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumAttempts: 5 },
} as const;

/** Steps that normally need only Postgres. */
function inPostgres(summary: string): TopUpActivities {
  return proxyActivities<TopUpActivities>({ ...STEP, summary });
}

/**
 * Steps that call the processor, in a separate, paced queue. When it is backed up, steps that finish a payment go before
 * steps that open another one.
 */
function atProcessor(
  summary: string,
  priorityKey = FINISHES_PAYMENT,
): TopUpPaymentActivities & TopUpReversalActivities {
  return proxyActivities<TopUpPaymentActivities & TopUpReversalActivities>({
    ...STEP,
    taskQueue: stripeTaskQueue(workflowInfo().taskQueue),
    priority: { priorityKey },
    summary,
  });
}

/** Temporal's priorities: 1 goes first, 3 is the default. */
const FINISHES_PAYMENT = 1;
const OPENS_PAYMENT = 3;

export async function topUp(input: TopUpInput): Promise<TopUpView> {
  const run = newRun(input);
  listen(run);
  const { steps } = run;
  return steps.orderly(async () => {
    const claimed = await steps.take('claim', () => claim(run));
    if (claimed && MAY_BE_PAID.has(claimed.status)) {
      await conclude(run, await paymentOf(run, firstQuestionOf(claimed)));
    }
    for (;;) {
      if (hasReversals(run)) await syncReversals(run);
      await steps.end();
      const mayBePaid = mayHaveBeenPaid(run);
      if (!mayBePaid && !hasReversals(run)) return viewOf(run);
      steps.resume(); // a report arrived while it was ending
      if (mayBePaid) await conclude(run, await paymentOf(run, 'ask'));
    }
  });
}

const MAY_BE_PAID: ReadonlySet<TopUpView['status']> = new Set(['pending', 'expired', 'failed']);

function mayHaveBeenPaid({ steps, status }: Run): boolean {
  return steps.woken && (status === 'expired' || status === 'failed');
}

/** Reported refunds and disputes wait until the top-up is credited. */
function hasReversals({ reversalReported, status }: Run): boolean {
  return reversalReported && !MAY_BE_PAID.has(status) && status !== 'withdrawn';
}

/** Null: the top-up was withdrawn, and nothing may be done. */
async function claim(run: Run): Promise<ClaimedTopUp | null> {
  const opened = await inPostgres('Claim the top-up').openTopUp(run.topUpId);
  if (opened === null) {
    run.status = 'withdrawn';
    return null;
  }
  run.status = opened.status;
  run.method = opened.method;
  run.sessionUrl = opened.sessionUrl;
  // Histories of earlier releases do not have these.
  run.sessionId = opened.sessionId ?? null;
  run.paymentIntentId = opened.paymentIntentId ?? null;
  run.dashboardUrl = opened.dashboardUrl ?? null;
  run.failure = opened.failure;
  run.consumerId = opened.consumerId;
  run.amountDollars = opened.amountDollars;
  run.askAfterMs = opened.firstAskMs;
  run.steps.display();
  return opened;
}

/** The steps that find out whether it was paid. An operator's `cancel` replaces any of them. */
type Question = 'openCheckout' | 'chargeCard' | 'ask' | 'cancel';

function firstQuestionOf({ status, method, sessionUrl }: ClaimedTopUp): Question {
  if (status !== 'pending') return 'ask';
  if (method === 'direct') return 'chargeCard';
  // A later run asks at once, since the previous run may not have acted on a report.
  return sessionUrl === null ? 'openCheckout' : 'ask';
}

/** Waits for the processor's final verdict on a pending top-up; of one that has ended, returns the current verdict. */
async function paymentOf(run: Run, first: Question): Promise<Verdict> {
  let verdict = await answerTo(run, first);
  run.needsPayer = isForPayer(verdict);
  while (verdict.kind === 'open' && run.status === 'pending') {
    if (!run.steps.cancelAsked) await waitForReport(run);
    verdict = await answerTo(run, 'ask');
    run.needsPayer = isForPayer(verdict);
  }
  return verdict;
}

function isForPayer(verdict: Verdict): boolean {
  return verdict.kind === 'open' && verdict.needsPayer === true;
}

async function answerTo(run: Run, first: Question): Promise<Verdict> {
  const { steps } = run;
  let question = first;
  for (;;) {
    if (steps.cancelAsked) question = 'cancel';
    const answer = await steps.attempt(question, () => QUESTIONS[question](run));
    if (answer) return answer.value;
  }
}

const QUESTIONS: Readonly<Record<Question, (run: Run) => Promise<Verdict>>> = {
  async openCheckout(run) {
    const opened: OpenedCheckout | string = await atProcessor(
      'Open a checkout session',
      OPENS_PAYMENT,
    ).openCheckout(run.topUpId);
    // Histories of earlier releases have only the URL.
    run.sessionUrl = typeof opened === 'string' ? opened : opened.sessionUrl;
    run.sessionId = typeof opened === 'string' ? null : opened.sessionId;
    return { kind: 'open' };
  },

  chargeCard: ({ topUpId }) =>
    atProcessor('Charge the saved card', OPENS_PAYMENT).chargeSavedCard(topUpId),

  ask({ topUpId, steps }) {
    steps.woken = false; // the question below covers everything reported so far
    return atProcessor('Ask the processor').askProcessor(topUpId);
  },

  cancel({ topUpId, steps }) {
    steps.cancelAsked = false;
    return atProcessor('Cancel the payment').cancelPayment(topUpId);
  },
};

async function waitForReport(run: Run): Promise<void> {
  const { steps } = run;
  steps.step = 'wait';
  steps.waitingFor = 'payment';
  steps.display();
  const isReported = await rest(run, run.askAfterMs, 'Wait for a report of the payment');
  if (!isReported) run.askAfterMs = Math.min(run.askAfterMs * ASK_FACTOR, ASK_MS_MAX);
}

/** Acts on the processor's verdict. A top-up that has ended changes only if it turns out to be paid. */
async function conclude(run: Run, verdict: Verdict): Promise<void> {
  const { topUpId, steps } = run;
  steps.cancelAsked = false; // too late
  if (verdict.kind === 'paid') {
    if (verdict.isReversed) run.reversalReported = true;
    run.paymentIntentId = verdict.paymentIntentId;
    const crediting = inPostgres(`Credit $${run.amountDollars}`);
    await steps.take('credit', () => crediting.creditTopUp(topUpId));
    run.status = 'completed';
    run.failure = null;
  } else if (run.status !== 'pending') {
    return;
  } else if (verdict.kind === 'failed') {
    const { failure } = verdict;
    const failing = inPostgres('Record that it failed');
    run.failure = failure;
    run.autoTopUp = await steps.take('fail', () => failing.failTopUp(topUpId, failure));
    run.status = 'failed';
  } else {
    const expiring = inPostgres('Record that it expired');
    await steps.take('expire', () => expiring.expireTopUp(topUpId));
    run.status = 'expired';
  }
}

async function syncReversals(run: Run): Promise<void> {
  const { topUpId, steps } = run;
  const syncing = atProcessor('Sync refunds and disputes');
  const synced = await steps.take('syncReversals', () => {
    run.reversalReported = false; // the read below covers everything reported so far
    steps.waitingFor = 'processor';
    return syncing.settleTopUp(topUpId);
  });
  run.status = synced.status;
  run.heldDollars = synced.heldDollars;
  run.debtDollars = synced.debtDollars;
}

/** Waits for the processor's `Retry-After`, which only `cancel` ends, and then until the step is due or requested. */
async function pauseAfter(run: Run, step: string, failure: ActivityFailure): Promise<void> {
  const { steps } = run;
  const retryAfterMs = Math.min(retryAfterMsOf(failure), RETRY_MS_MAX);
  if (retryAfterMs > 0) {
    await steps.pause(retryAfterMs, "The processor's Retry-After", () => isCanceling(steps));
  }
  const delayMs = Math.min(RETRY_MS_MIN * 2 ** (steps.failures - 1), RETRY_MS_MAX);
  await rest(run, jittered(delayMs, Math.random()), `Try ${step} again`);
}

/** Whether a message ended the pause. Clears the message. */
async function rest({ steps }: Run, timeoutMs: number, summary: string): Promise<boolean> {
  const isTold = await steps.pause(timeoutMs, summary, () => steps.woken || isCanceling(steps));
  steps.woken = false;
  return isTold;
}

/** Steps at which the payment is still undecided. */
const CANCELLABLE: ReadonlySet<string> = new Set<Question | 'wait'>([
  'openCheckout',
  'chargeCard',
  'wait',
  'ask',
  'cancel',
]);

function isCanceling({ step, cancelAsked }: Steps): boolean {
  return cancelAsked && CANCELLABLE.has(step);
}

function listen(run: Run): void {
  const { steps } = run;
  setHandler(messages.paymentReported, () => void (steps.woken = true), {
    description: 'An event about the payment arrived: asks the processor now.',
  });
  setHandler(
    messages.reversalReported,
    () => {
      run.reversalReported = true;
      steps.woken = true; // a reversal implies a payment
    },
    { description: 'A refund or dispute was reported, or a refund was requested: reads it now.' },
  );
  setHandler(
    messages.sessionUrl,
    async () => {
      await condition(() => run.sessionUrl !== null || steps.ended || steps.stuck !== null);
      return viewOf(run);
    },
    { description: 'Returns when the checkout can be paid, or the top-up is stuck.' },
  );
  setHandler(
    messages.outcome,
    async () => {
      await condition(() => steps.ended || steps.stuck !== null || run.needsPayer);
      return viewOf(run);
    },
    { description: 'Returns when the top-up has ended, is stuck, or waits for the payer.' },
  );
  setHandler(
    messages.retry,
    async () => {
      await steps.isHeeded('woken');
      return progressOf(run);
    },
    { description: 'For operators: retries the failing step, or asks the processor, now.' },
  );
  setHandler(
    messages.cancel,
    async () => {
      await steps.isHeeded('cancelAsked');
      return progressOf(run);
    },
    {
      description:
        'For operators: closes the payment at the processor and ends the top-up. Refused once the top-up is paid or has ended.',
      validator: () => {
        if (steps.step === 'claim' || (CANCELLABLE.has(steps.step) && !steps.ended)) return;
        throw new Error(`Too late to cancel: the top-up is at the step "${steps.step}".`);
      },
    },
  );
  setHandler(messages.status, () => progressOf(run), {
    description: 'The status, what the top-up waits for, and why it is stuck, if it is.',
  });
}

function newRun(input: TopUpInput): Run {
  const { topUpId, reversalReported = false } = input;
  const run: Run = {
    topUpId,
    steps: new Steps('claim', 'processor', {
      stuckAfter: 1,
      display: () => display({ ...progressOf(run), ...run, ended: run.steps.ended }),
      beginAnew: (step) =>
        continueAsNew<typeof topUp>(
          run.reversalReported || step === 'syncReversals'
            ? { ...input, reversalReported: true }
            : input,
        ),
      pauseAfter: (step, failure) => pauseAfter(run, step, failure),
    }),
    status: 'pending',
    method: undefined,
    sessionUrl: null,
    sessionId: null,
    paymentIntentId: null,
    dashboardUrl: null,
    failure: null,
    autoTopUp: null,
    consumerId: undefined,
    amountDollars: undefined,
    heldDollars: 0,
    debtDollars: 0,
    needsPayer: false,
    askAfterMs: ASK_MS_MAX,
    reversalReported,
  };
  return run;
}

function viewOf({ status, sessionUrl, failure }: Run): TopUpView {
  return { status, sessionUrl, failure };
}

function progressOf(run: Run): TopUpProgress {
  const { heldDollars, debtDollars, sessionId, paymentIntentId, steps } = run;
  const { waitingFor, stuck } = steps;
  return {
    ...viewOf(run),
    heldDollars,
    debtDollars,
    sessionId,
    paymentIntentId,
    waitingFor,
    stuck,
  };
}
