/**
 * The refunds and disputes of a credited top-up: reads all of them at the processor whenever one was reported, however
 * long ago the top-up was paid, and makes the refunds that were requested. Each run begins by reading the top-up's row.
 */
import { CancellationScope, continueAsNew, setHandler } from '@temporalio/workflow';
import type { TopUpState } from '../activities/top-ups.ts';
import { isCredited } from '../src/domain/top-up.ts';
import * as messages from './messages.ts';
import type { ReversalsInput, ReversalsProgress, ReversalsView } from './messages.ts';
import { atProcessor, inPostgres, pauseAfter } from './processor-steps.ts';
import { display } from './reversals-display.ts';
import { Steps } from './steps.ts';

interface Run {
  readonly topUpId: string;
  readonly steps: Steps;
  /** Undefined until it has been read. */
  topUp: TopUpState | undefined;
  view: ReversalsView;
  /**
   * How many reports arrived. `steps.woken` would not do: `retry` sets it too, a pause clears it, and
   * recorded histories have the reads that this count led to.
   */
  reports: number;
}

export async function reversals(input: ReversalsInput): Promise<ReversalsView> {
  const run = newRun(input);
  listen(run);
  const { steps } = run;
  // Nothing to cancel: what happened at the processor counts.
  return CancellationScope.nonCancellable(async () => {
    let topUp = await read(run);
    do {
      const isAgain = steps.ended;
      steps.resume(); // the reads below cover everything reported so far
      if (isAgain && !isCredited(topUp.status)) topUp = await read(run);
      // The credit starts another run, if somebody started this one before it.
      if (isCredited(topUp.status)) run.view = await steps.take('sync', () => sync(run));
      await steps.end();
    } while (steps.woken); // a report arrived while it was reading or ending
    return run.view;
  });
}

/** The row. Again, if a reversal was reported during the read and the row was not credited then: it may be now. */
async function read(run: Run): Promise<TopUpState> {
  const { steps, topUpId } = run;
  for (;;) {
    const { reports } = run;
    const topUp = await steps.take('read', () => inPostgres('Read the top-up').readTopUp(topUpId));
    run.topUp = topUp;
    run.view = { ...run.view, status: topUp.status };
    steps.display();
    if (isCredited(topUp.status) || run.reports === reports) return topUp;
  }
}

async function sync({ topUpId }: Run): Promise<ReversalsView> {
  return atProcessor('Read refunds and disputes').settleTopUp(topUpId);
}

function listen(run: Run): void {
  const { steps } = run;
  const report = () => {
    run.reports += 1;
    steps.woken = true;
  };
  setHandler(messages.reversalReported, report, {
    description: 'A refund or dispute was reported, or a refund was requested: reads it now.',
  });
  setHandler(
    messages.reversalsRetry,
    async () => {
      await steps.untilHeeded('woken');
      return progressOf(run);
    },
    { description: 'For operators: retries the failing step now.' },
  );
  setHandler(messages.reversalsStatus, () => progressOf(run), {
    description: 'The status, what is held and owed, and why it is stuck, if it is.',
  });
}

function newRun(input: ReversalsInput): Run {
  const run: Run = {
    topUpId: input.topUpId,
    steps: new Steps('read', 'processor', {
      stuckAfter: 1,
      display: () => display({ ...progressOf(run), ...run, ended: run.steps.ended }),
      // The new run reads everything, so it needs no messages of this one.
      beginAnew: () => continueAsNew<typeof reversals>(input),
      pauseAfter: (step, failure) => pauseAfter(run.steps, step, failure, () => false),
    }),
    topUp: undefined,
    view: { status: null, heldDollars: 0, debtDollars: 0 },
    reports: 0,
  };
  return run;
}

function progressOf({ view, steps }: Run): ReversalsProgress {
  return { ...view, waitingFor: steps.waitingFor, stuck: steps.stuck };
}
