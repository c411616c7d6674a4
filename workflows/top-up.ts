/**
 * A top-up, from the request to its last state, and again whenever it is refunded or disputed after that.
 * Remembers which step comes next; Postgres decides whether a step takes effect, and the processor alone
 * says whether money came. Each run begins by reading the row, so that a run which follows another, ended
 * or terminated, repeats nothing.
 */
import {
  type ActivityFailure,
  condition,
  continueAsNew,
  proxyActivities,
  setHandler,
} from '@temporalio/workflow';
import type { TopUpActivities, ClaimedTopUp } from '../activities/top-ups.ts';
import type { OpenedCheckout, TopUpPaymentActivities } from '../activities/top-up-payments.ts';
import type { TopUpReversalActivities } from '../activities/top-up-reversals.ts';
import type { AutoTopUpState } from '../src/domain/top-up.ts';
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
  /** Of the processor's dashboard; null where there is none. */
  dashboardUrl: string | null;
  failure: TopUpView['failure'];
  /** After an automatic top-up failed: what becomes of the next ones. */
  autoTopUp: AutoTopUpState | null;
  consumerId: string | undefined;
  amountDollars: number | undefined;
  heldDollars: number;
  debtDollars: number;
  /** How long to wait for a report before asking the processor unprompted; grows. */
  askAfterMs: number;
  /** Refunds and disputes are to be read as soon as it is credited. */
  reversalReported: boolean;
}

/** After a step has used up its attempts: so long, then doubling up to the maximum. */
const RETRY_MS_MIN = 10_000;

type Activities = TopUpActivities & TopUpPaymentActivities & TopUpReversalActivities;

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
  const { steps } = run;
  return steps.orderly(async () => {
    const opened = await steps.take('claim', () => claim(run));
    if (opened && MAY_BE_PAID.has(opened.status)) {
      await conclude(run, await paymentOf(run, firstQuestionOf(opened)));
    }
    for (;;) {
      if (hasReversals(run)) await syncReversals(run);
      await steps.end();
      const mayBePaid = mayHaveBeenPaid(run);
      if (!mayBePaid && !hasReversals(run)) return viewOf(run);
      steps.resume(); // something was reported while it was ending
      if (mayBePaid) await conclude(run, await paymentOf(run, 'ask'));
    }
  });
}

const MAY_BE_PAID: ReadonlySet<TopUpView['status']> = new Set(['pending', 'expired', 'failed']);

function mayHaveBeenPaid({ steps, status }: Run): boolean {
  return steps.woken && (status === 'expired' || status === 'failed');
}

/** Whatever was reported of refunds and disputes, it waits until there is a credit to take from. */
function hasReversals({ reversalReported, status }: Run): boolean {
  return reversalReported && !MAY_BE_PAID.has(status) && status !== 'withdrawn';
}

/** Null: it was withdrawn, and nothing may be done. */
async function claim(run: Run): Promise<ClaimedTopUp | null> {
  const opened = await activities('Take up the top-up').openTopUp(run.topUpId);
  if (opened === null) {
    run.status = 'withdrawn';
    return null;
  }
  run.status = opened.status;
  run.method = opened.method;
  run.sessionUrl = opened.sessionUrl;
  // Histories that were recorded earlier do not have these.
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

/** The steps that tell whether it was paid. An operator's `cancel` takes the place of each of them. */
type Question = 'openCheckout' | 'chargeCard' | 'ask' | 'cancel';

function firstQuestionOf({ status, method, sessionUrl }: ClaimedTopUp): Question {
  if (status !== 'pending') return 'ask';
  if (method === 'direct') return 'chargeCard';
  // Asked at once in a later run: what was reported to the one before may not have been acted on.
  return sessionUrl === null ? 'openCheckout' : 'ask';
}

/** Returns when the processor says that it was paid or never will be; of one that has ended, what it says now. */
async function paymentOf(run: Run, first: Question): Promise<Verdict> {
  let verdict = await answerTo(run, first);
  while (verdict.kind === 'open' && run.status === 'pending') {
    if (!run.steps.cancelAsked) await waitForReport(run);
    verdict = await answerTo(run, 'ask');
  }
  return verdict;
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
    const opened: OpenedCheckout | string = await activities(
      'Open a checkout session',
    ).openCheckout(run.topUpId);
    // Histories that were recorded earlier have the URL alone.
    run.sessionUrl = typeof opened === 'string' ? opened : opened.sessionUrl;
    run.sessionId = typeof opened === 'string' ? null : opened.sessionId;
    return { kind: 'open' };
  },

  chargeCard: ({ topUpId }) => activities('Charge the saved card').chargeSavedCard(topUpId),

  ask({ topUpId, steps }) {
    steps.woken = false; // whatever was reported until now, this asks about
    return activities('Ask the processor').askProcessor(topUpId);
  },

  cancel({ topUpId, steps }) {
    steps.cancelAsked = false;
    return activities('Cancel the payment').cancelPayment(topUpId);
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

/** What the processor says decides. An ended top-up changes only by turning out to be paid. */
async function conclude(run: Run, verdict: Verdict): Promise<void> {
  const { topUpId, steps } = run;
  steps.cancelAsked = false; // too late
  if (verdict.kind === 'paid') {
    if (verdict.isReversed) run.reversalReported = true;
    run.paymentIntentId = verdict.paymentIntentId;
    const crediting = activities(`Credit ${run.amountDollars} dollars`);
    await steps.take('credit', () => crediting.creditTopUp(topUpId));
    run.status = 'completed';
    run.failure = null;
  } else if (run.status !== 'pending') {
    return;
  } else if (verdict.kind === 'failed') {
    const { failure } = verdict;
    const failing = activities('Record that it failed');
    run.failure = failure;
    run.autoTopUp = await steps.take('fail', () => failing.failTopUp(topUpId, failure));
    run.status = 'failed';
  } else {
    const expiring = activities('Record that it expired');
    await steps.take('expire', () => expiring.expireTopUp(topUpId));
    run.status = 'expired';
  }
}

async function syncReversals(run: Run): Promise<void> {
  const { topUpId, steps } = run;
  const reading = activities('Settle refunds and disputes');
  const settled = await steps.take('syncReversals', () => {
    run.reversalReported = false; // whatever was reported until now, this reads
    steps.waitingFor = 'processor';
    return reading.settleTopUp(topUpId);
  });
  run.status = settled.status;
  run.heldDollars = settled.heldDollars;
  run.debtDollars = settled.debtDollars;
}

/** As long as the processor asks for, whoever wants it sooner; then until the step is due or wanted. */
async function pauseAfter(run: Run, step: string, failure: ActivityFailure): Promise<void> {
  const { steps } = run;
  const retryAfterMs = Math.min(retryAfterMsOf(failure), RETRY_MS_MAX);
  if (retryAfterMs > 0) {
    await steps.pause(retryAfterMs, 'As the processor asks', () => isCanceling(steps));
  }
  const delayMs = Math.min(RETRY_MS_MIN * 2 ** (steps.failures - 1), RETRY_MS_MAX);
  await rest(run, delayMs, `Try ${step} again`);
}

/** True when anything was said to the workflow; what was said counts as read. */
async function rest({ steps }: Run, timeoutMs: number, summary: string): Promise<boolean> {
  const isTold = await steps.pause(timeoutMs, summary, () => steps.woken || isCanceling(steps));
  steps.woken = false;
  return isTold;
}

/** Steps at which it is still open whether money comes. */
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
    description: 'Something was reported about the payment: ask the processor now.',
  });
  setHandler(
    messages.reversalReported,
    () => {
      run.reversalReported = true;
      steps.woken = true; // it was paid, then
    },
    { description: 'A refund or dispute was reported or asked for: read it now.' },
  );
  setHandler(
    messages.sessionUrl,
    async () => {
      await condition(() => run.sessionUrl !== null || steps.ended || steps.stuck !== null);
      return viewOf(run);
    },
    { description: 'Answers when the checkout can be paid, or cannot be for now.' },
  );
  setHandler(
    messages.outcome,
    async () => {
      await condition(() => steps.ended || steps.stuck !== null);
      return viewOf(run);
    },
    { description: 'Answers when the top-up has ended, or is stuck.' },
  );
  setHandler(
    messages.retry,
    async () => {
      await steps.isHeeded('woken');
      return progressOf(run);
    },
    { description: 'For operators: tries the step that fails, or asks the processor, now.' },
  );
  setHandler(
    messages.cancel,
    async () => {
      await steps.isHeeded('cancelAsked');
      return progressOf(run);
    },
    {
      description:
        'For operators: closes the payment at the processor and ends the top-up. Refused once the top-up is paid or over.',
      validator: () => {
        if (steps.step === 'claim' || (CANCELLABLE.has(steps.step) && !steps.ended)) return;
        throw new Error(`too late to cancel: the top-up is at the step "${steps.step}"`);
      },
    },
  );
  setHandler(messages.status, () => progressOf(run), {
    description: 'The status, what it waits for, and why it is stuck if it is.',
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
