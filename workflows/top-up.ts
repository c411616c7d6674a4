/**
 * The payment of a top-up, from the request to its final state. The workflow remembers the next step; Postgres decides
 * whether a step takes effect, and only the processor says whether it was paid. Each run begins by reading the row, so
 * that a run after one that ended or was terminated repeats nothing. Refunds and disputes are in reversals.ts.
 */
import { condition, continueAsNew, setHandler } from '@temporalio/workflow';
import type { TopUpState } from '../activities/top-ups.ts';
import type { OpenedCheckout } from '../activities/top-up-payments.ts';
import { formatDollarNumber } from '../src/domain/money.ts';
import { ASK_FACTOR, ASK_MS_MAX, isCredited, type AutoTopUpState } from '../src/domain/top-up.ts';
import type { Verdict } from '../src/domain/verdict.ts';
import * as messages from './messages.ts';
import type { TopUpInput, TopUpProgress, TopUpView } from './messages.ts';
import { atProcessor, inPostgres, OPENS_PAYMENT, pauseAfter, rest } from './processor-steps.ts';
import { lasting, Steps } from './steps.ts';
import { display } from './top-up-display.ts';
import * as before from './top-up-reversals.ts';

interface Run {
  readonly topUpId: string;
  readonly steps: Steps;
  status: TopUpView['status'];
  method: TopUpState['method'] | undefined;
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
  /** The bank wants the cardholder to confirm the payment. */
  needsPayer: boolean;
  /** The payer has authorized the payment, and the bank takes days. */
  isUnderWay: boolean;
  /** How long to wait for a report before asking the processor; grows. */
  askAfterMs: number;
  /** Only in runs of earlier releases (top-up-reversals.ts). */
  reversalReported: boolean;
}

export async function topUp(input: TopUpInput): Promise<TopUpView> {
  const run = newRun(input);
  listen(run);
  const { steps } = run;
  return steps.orderly(async () => {
    const claimed = await steps.take('claim', () => claim(run));
    let question = claimed && !isCredited(claimed.status) && firstQuestionOf(claimed);
    do {
      if (question) await conclude(run, await paymentOf(run, question));
      if (before.hasReversals(run)) await before.readReversals(run);
      await steps.end();
      question = mayHaveBeenPaid(run) && 'ask'; // a report arrived while it was ending
      steps.resume();
    } while (question || before.hasReversals(run));
    return viewOf(run);
  });
}

function mayHaveBeenPaid({ steps, status }: Run): boolean {
  return steps.woken && (status === 'expired' || status === 'failed');
}

/** Null: the top-up was withdrawn, and nothing may be done. */
async function claim(run: Run): Promise<TopUpState | null> {
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

function firstQuestionOf({ status, method, sessionUrl }: TopUpState): Question {
  if (status !== 'pending') return 'ask';
  if (method === 'direct') return 'chargeCard';
  // A later run asks at once, since the previous run may not have acted on a report.
  return sessionUrl === null ? 'openCheckout' : 'ask';
}

/** Waits for the processor's final verdict on a pending top-up; of one that has ended, returns the current verdict. */
async function paymentOf(run: Run, first: Question): Promise<Verdict> {
  let verdict = await answerTo(run, first);
  while (verdict.kind === 'open' && run.status === 'pending') {
    run.needsPayer = verdict.needsPayer === true;
    run.isUnderWay = verdict.isUnderWay === true;
    if (!run.steps.cancelAsked) await waitForReport(run);
    verdict = await answerTo(run, 'ask');
  }
  run.needsPayer = false;
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
  const isReported = await rest(steps, run.askAfterMs, 'Wait for a report of the payment', () =>
    isCanceling(steps),
  );
  if (!isReported) run.askAfterMs = Math.min(run.askAfterMs * ASK_FACTOR, ASK_MS_MAX);
}

/** Acts on the processor's verdict. A top-up that has ended changes only if it turns out to be paid. */
async function conclude(run: Run, verdict: Verdict): Promise<void> {
  const { topUpId, steps } = run;
  steps.cancelAsked = false; // too late
  if (verdict.kind === 'paid') {
    if (before.isReversed(verdict)) run.reversalReported = true;
    run.paymentIntentId = verdict.paymentIntentId;
    const crediting = inPostgres(`Credit ${formatDollarNumber(run.amountDollars ?? 0)}`);
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

/** Steps at which the payment is still undecided. */
const CANCELLABLE: ReadonlySet<string> = new Set<Question | 'wait'>([
  'openCheckout',
  'chargeCard',
  'wait',
  'ask',
  'cancel',
]);

function mayCancel({ step, ended }: Steps): boolean {
  return step === 'claim' || (CANCELLABLE.has(step) && !ended);
}

function isCanceling({ step, cancelAsked }: Steps): boolean {
  return cancelAsked && CANCELLABLE.has(step);
}

function listen(run: Run): void {
  const { steps } = run;
  setHandler(messages.paymentReported, () => void (steps.woken = true), {
    description: 'An event about the payment arrived: asks the processor now.',
  });
  before.listenForReversals(run);
  setHandler(
    messages.sessionUrl,
    async () => {
      await lasting(() =>
        condition(() => run.sessionUrl !== null || steps.ended || steps.stuck !== null),
      );
      return viewOf(run);
    },
    { description: 'Returns when the checkout can be paid, or the top-up is stuck.' },
  );
  setHandler(
    messages.outcome,
    async () => {
      await lasting(() => condition(() => steps.ended || steps.stuck !== null || run.needsPayer));
      return viewOf(run);
    },
    { description: 'Returns when the top-up has ended, is stuck, or waits for the payer.' },
  );
  setHandler(
    messages.retry,
    async () => {
      await steps.untilHeeded('woken');
      return progressOf(run);
    },
    { description: 'For operators: retries the failing step, or asks the processor, now.' },
  );
  setHandler(
    messages.cancel,
    async () => {
      await steps.untilHeeded('cancelAsked');
      return progressOf(run);
    },
    {
      description:
        'For operators: closes the payment at the processor and ends the top-up. Refused once the top-up is paid or has ended.',
      validator: () => {
        if (mayCancel(steps)) return;
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
      display: () =>
        display({
          ...progressOf(run),
          ...run,
          ended: run.steps.ended,
          mayCancel: mayCancel(run.steps),
        }),
      beginAnew: (step) => continueAsNew<typeof topUp>(before.inputOf(run, step)),
      pauseAfter: (step, failure) =>
        pauseAfter(run.steps, step, failure, () => isCanceling(run.steps)),
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
    needsPayer: false,
    isUnderWay: false,
    askAfterMs: ASK_MS_MAX,
    reversalReported,
  };
  return run;
}

function viewOf({ status, sessionUrl, failure }: Run): TopUpView {
  return { status, sessionUrl, failure };
}

function progressOf(run: Run): TopUpProgress {
  const { sessionId, paymentIntentId, steps } = run;
  const { waitingFor, stuck } = steps;
  return { ...viewOf(run), sessionId, paymentIntentId, waitingFor, stuck };
}
