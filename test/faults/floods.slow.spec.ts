/** Floods by one developer, in their short form: no charge of another developer is refused or waits for long. */
import assert from 'node:assert/strict';
import { ChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { bodyOf, charge } from '../support/http.ts';
import { until, WITH_RATE_LIMITS } from '../support/stack.ts';
import { FLOODS, floodsOf, makeLargeBudgets, measure, type Flood } from './floods.ts';

/** Each connection waits for its answer, so after a second a flood is as long as it gets. */
const OPTIONS = { connections: 32, forMs: 1_000 };
/** Far above the times of the long form: the test machine does other work too. */
const P99_MS_MAX = 5_000;

describe('a flood of one developer', () => {
  let api: TestApi;
  let attacker: TestAccount;
  let victim: TestAccount;
  let floods: readonly Flood[];

  before(async () => {
    api = await startTestApiProcesses({ env: WITH_RATE_LIMITS });
    attacker = await api.createAccount(1_000);
    victim = await api.createAccount(1_000);
    const poor = await api.createAccount(1);
    const { id } = bodyOf(await charge(api, attacker, { amount: 1 }), 201, ChargeReply);
    floods = floodsOf(attacker, poor, id);
    await makeLargeBudgets(api, attacker);
    await measure(api, victim, {}, OPTIONS);
  });
  after(() => api?.stop());

  for (const name of FLOODS) {
    it(`of ${name} makes no other developer’s charge fail or wait for long`, async () => {
      const flood = floods.find((each) => each.name === name);
      assert.ok(flood);
      // Again while the machine does too much other work. What a flood does to others, it does each time.
      await until(async () => {
        const { charges, refused, p99Ms } = await measure(api, victim, flood, OPTIONS);
        return charges > 0 && refused === 0 && p99Ms < P99_MS_MAX;
      });
    });
  }

  it('leaves the books correct', () => proveBooks(api.env, { processor: false }));
});
