/**
 * Proves that the recorded histories notice a change of the workflows: breaks the workflow code in one way
 * after the other, and replays the history that must then fail. `npm run test:mutations`, about a minute.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { DeterminismViolationError } from '@temporalio/workflow';
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker';
import { installRuntime } from '../../src/temporal/runtime.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Inside of the repository, so that the bundler finds the packages. */
const COPY = join(ROOT, '.farebox/mutation');

interface Mutation {
  readonly what: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly history: string;
}

const MUTATIONS: readonly Mutation[] = [
  {
    what: 'a later run over an expired top-up ends and does not ask',
    file: 'top-up.ts',
    from: 'claimed && !isCredited(claimed.status) && firstQuestionOf(claimed)',
    to: "claimed?.status === 'pending' && firstQuestionOf(claimed)",
    history: 'checkout-reported-after-it-expired',
  },
  {
    what: 'a later run over a failed top-up ends and does not ask',
    file: 'top-up.ts',
    from: 'claimed && !isCredited(claimed.status) && firstQuestionOf(claimed)',
    to: "claimed?.status === 'pending' && firstQuestionOf(claimed)",
    history: 'direct-reported-after-it-failed',
  },
  {
    what: 'a later run over a row with a session opens another checkout',
    file: 'top-up.ts',
    from: "sessionUrl === null ? 'openCheckout' : 'ask'",
    to: "sessionUrl === '' ? 'ask' : 'openCheckout'",
    history: 'checkout-begun-again',
  },
  {
    what: 'a stuck credit is given up',
    file: 'top-up.ts',
    from: "steps.take('credit'",
    to: "steps.attempt('credit'",
    history: 'checkout-credit-stuck',
  },
  {
    what: 'a stuck expiry is given up',
    file: 'top-up.ts',
    from: "steps.take('expire'",
    to: "steps.attempt('expire'",
    history: 'checkout-expire-stuck',
  },
  {
    what: 'a stuck claim is given up',
    file: 'top-up.ts',
    from: "steps.take('claim', () => claim(run))",
    to: "steps.attempt('claim', () => claim(run)).then((taken) => taken?.value ?? null)",
    history: 'checkout-open-stuck',
  },
  {
    what: 'an update waits without a limit',
    file: 'steps.ts',
    from: "if (!patched('bounded-updates'))",
    to: 'if (this.failures >= 0)',
    history: 'checkout-cancel-timed',
  },
  {
    what: 'a run never continues as a new one',
    file: 'steps.ts',
    from: 'workflowInfo().continueAsNewSuggested && ',
    to: 'workflowInfo().historyLength < 0 && ',
    history: 'checkout-continued',
  },
  {
    what: 'a report does not end the wait',
    file: 'processor-steps.ts',
    from: '() => steps.woken || isCanceling()',
    to: '() => isCanceling()',
    history: 'checkout-reported',
  },
  {
    what: 'a top-up is credited by a step of another name',
    file: 'top-up.ts',
    from: 'crediting.creditTopUp(topUpId)',
    to: 'crediting.readTopUp(topUpId)',
    history: 'checkout-reported',
  },
  {
    what: 'a step is added before the credit',
    file: 'top-up.ts',
    from: "await steps.take('credit'",
    to: "await crediting.readTopUp(topUpId);\n    await steps.take('credit'",
    history: 'checkout-reported',
  },
  {
    what: 'a top-up that has ended is recorded as expired again',
    file: 'top-up.ts',
    from: "} else if (run.status !== 'pending') {\n    return;",
    to: "} else if (run.status === 'completed') {\n    return;",
    history: 'checkout-reported-after-it-expired',
  },
  {
    what: 'the details of the row are not shown once it is claimed',
    file: 'top-up.ts',
    from: 'run.askAfterMs = opened.firstAskMs;\n  run.steps.display();',
    to: 'run.askAfterMs = opened.firstAskMs;',
    history: 'checkout-reported-after-it-expired',
  },
  {
    what: 'a reconciliation has another stage',
    file: 'reconcile-top-ups.ts',
    from: "  walking('disputes'),\n",
    to: "  walking('disputes'),\n  walking('refunds'),\n",
    history: 'reconciliation-of-a-warning',
  },
  {
    what: "the processor's Retry-After is ignored",
    file: 'processor-steps.ts',
    from: 'if (retryAfterMs > 0)',
    to: 'if (retryAfterMs < 0)',
    history: 'checkout-left-alone-as-asked',
  },
  {
    what: 'a stuck charge of the card becomes a question',
    file: 'top-up.ts',
    from: 'if (answer) return answer.value;',
    to: "if (answer) return answer.value;\n    question = 'ask';",
    history: 'direct-stuck-then-retried',
  },
  {
    what: 'a stuck opening of a checkout becomes a question',
    file: 'top-up.ts',
    from: 'if (answer) return answer.value;',
    to: "if (answer) return answer.value;\n    question = 'ask';",
    history: 'checkout-session-stuck',
  },
  {
    what: 'a stuck question is given up until the next report',
    file: 'top-up.ts',
    from: 'if (answer) return answer.value;',
    to: "return answer?.value ?? { kind: 'open' };",
    history: 'checkout-ask-stuck',
  },
  {
    what: 'a stuck cancellation becomes a question',
    file: 'top-up.ts',
    from: 'if (answer) return answer.value;',
    to: "if (answer) return answer.value;\n    question = 'ask';",
    history: 'checkout-cancel-stuck',
  },
  {
    what: 'a stuck failure is given up',
    file: 'top-up.ts',
    from: "await steps.take('fail', () => failing.failTopUp(topUpId, failure));",
    to: "(await steps.attempt('fail', () => failing.failTopUp(topUpId, failure)))?.value ?? null;",
    history: 'direct-fail-stuck',
  },
  {
    what: 'a reconciliation asks about our own top-ups before it walks',
    file: 'reconcile-top-ups.ts',
    from: '[...WALKS, UNSETTLED]',
    to: '[UNSETTLED, ...WALKS]',
    history: 'reconciliation-walks-first',
  },
  {
    what: 'cancel does not close the payment',
    file: 'top-up.ts',
    from: "if (steps.cancelAsked) question = 'cancel';",
    to: "if (steps.cancelAsked) question = 'ask';",
    history: 'checkout-canceled',
  },
  {
    what: 'a run of the previous release does not read its reversals',
    file: 'top-up-reversals.ts',
    from: "reversalReported && status !== 'withdrawn'",
    to: "reversalReported && status === 'withdrawn'",
    history: 'reversal-disputed',
  },
  {
    what: 'a stuck read of reversals is given up',
    file: 'reversals.ts',
    from: "run.view = await steps.take('sync', () => sync(run))",
    to: "await steps.attempt('sync', () => sync(run))",
    history: 'reversals-stuck-then-retried',
  },
  {
    what: 'a report of a reversal during the read is ignored',
    file: 'reversals.ts',
    from: 'while (steps.woken)',
    to: 'while (steps.failures > 9)',
    history: 'reversals-reported-during-the-read',
  },
  {
    what: 'reversals are read without the row',
    file: 'reversals.ts',
    from: "inPostgres('Read the top-up').readTopUp(topUpId)",
    to: "inPostgres('Read the top-up').openTopUp(topUpId)",
    history: 'reversals-disputed',
  },
  {
    what: "an operator's cancellation of an invocation is ignored",
    file: 'invocation.ts',
    from: 'const isToEnd = steps.cancelAsked || ',
    to: 'const isToEnd = ',
    history: 'invocation-canceled',
  },
];

function historyOf(name: string): unknown {
  return JSON.parse(readFileSync(join(import.meta.dirname, `0.1.0/${name}.json`), 'utf8'));
}

/** Bundles the sources with this mutation. */
async function bundle({ file, from, to }: Mutation): Promise<{ readonly code: string }> {
  rmSync(COPY, { recursive: true, force: true });
  mkdirSync(join(COPY, 'src'), { recursive: true });
  cpSync(join(ROOT, 'workflows'), join(COPY, 'workflows'), { recursive: true });
  cpSync(join(ROOT, 'src/domain'), join(COPY, 'src/domain'), { recursive: true });
  const path = join(COPY, 'workflows', file);
  const source = readFileSync(path, 'utf8');
  assert.equal(source.split(from).length, 2, `${file} has this once: ${from}`);
  writeFileSync(
    path,
    source.replace(from, () => to),
  );
  const workflowsPath = join(COPY, 'workflows/index.ts');
  return bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
}

installRuntime(pino({ level: 'silent' }));
const missed: string[] = [];
try {
  for (const mutation of MUTATIONS) {
    const { what, history } = mutation;
    const workflowBundle = await bundle(mutation);
    const isCaught = await Worker.runReplayHistory({ workflowBundle }, historyOf(history)).then(
      () => false,
      (error: unknown) => error instanceof DeterminismViolationError,
    );
    process.stdout.write(`${isCaught ? 'noticed' : 'MISSED'}: ${what} (${history})\n`);
    if (!isCaught) missed.push(what);
  }
} finally {
  rmSync(COPY, { recursive: true, force: true });
}
process.stdout.write(
  `${MUTATIONS.length - missed.length} of ${MUTATIONS.length} mutations noticed\n`,
);
process.exitCode = missed.length === 0 ? 0 : 1;
