/**
 * The events of complete lives of top-ups, delivered in any order, some twice and some never, after the facts
 * or while they happen. In every case, the first reconciliation after the checkouts' expiry leaves
 * the books correct.
 */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import type { TopUpStatus } from '../../src/domain/top-up.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import type { Random } from '../support/random.ts';
import { sql } from '../../src/store/database.ts';
import { proveBooks } from '../support/books.ts';
import { until } from '../support/stack.ts';
import type { Consumer, TopUpHarness } from '../support/top-up-harness.ts';

const DOLLARS = 25;
const CREDITED = { status: 'completed', dollars: DOLLARS } as const;

type EventType = Stripe.Event['type'];

interface Act {
  readonly do: (harness: TopUpHarness, life: Life) => Promise<unknown>;
  /** The event that the processor then sends. */
  readonly tells: readonly EventType[];
}

interface LifeCycle {
  readonly acts: readonly Act[];
  /** The final state. */
  readonly end: { readonly status: TopUpStatus; readonly dollars: number };
}

/** A checkout, and its payment once it has one. */
interface Life {
  readonly consumer: Consumer;
  readonly topUp: TopUp;
  intentId?: string | undefined;
}

const payBy = (card: string) => async (harness: TopUpHarness, life: Life) => {
  assert.equal(await harness.pay(life.topUp.sessionUrl, card), 200);
  const session = await harness.stripe.checkout.sessions.retrieve(life.topUp.sessionId ?? '');
  const intent = session.payment_intent;
  life.intentId = typeof intent === 'string' ? intent : intent?.id;
};

const PAY: Act = {
  do: payBy('4242424242424242'),
  tells: ['checkout.session.completed', 'payment_intent.succeeded'],
};
const DEBIT: Act = {
  do: payBy('000123456789'),
  tells: ['checkout.session.completed', 'payment_intent.processing'],
};
const REFUND: Act = {
  do: (harness, life) => harness.stripe.refunds.create({ payment_intent: life.intentId ?? '' }),
  tells: ['refund.created', 'charge.refunded'],
};
const DISPUTE: Act = {
  do: (harness, life) => harness.control('disputes', { payment_intent: life.intentId ?? '' }),
  tells: ['charge.dispute.created', 'charge.dispute.funds_withdrawn'],
};

const settle =
  (outcome: 'succeeded' | 'failed') =>
  (harness: TopUpHarness, { topUp }: Life) =>
    harness.control(`async/${topUp.sessionId}`, { outcome });

const close = (status: 'won' | 'lost') => async (harness: TopUpHarness, life: Life) => {
  const { data } = await harness.stripe.disputes.list({ payment_intent: life.intentId ?? '' });
  await harness.control(`disputes/${data[0]?.id}/close`, { status });
};

async function failRefund(harness: TopUpHarness, life: Life): Promise<void> {
  const { data } = await harness.stripe.refunds.list({ payment_intent: life.intentId ?? '' });
  await harness.control(`refunds/${data[0]?.id}/fail`);
}

const LIFE_CYCLES = {
  paid: { acts: [PAY], end: CREDITED },
  'paid by a debit that succeeds': {
    acts: [
      DEBIT,
      {
        do: settle('succeeded'),
        tells: ['checkout.session.async_payment_succeeded', 'payment_intent.succeeded'],
      },
    ],
    end: CREDITED,
  },
  'paid by a debit that fails': {
    acts: [
      DEBIT,
      {
        do: settle('failed'),
        tells: ['checkout.session.async_payment_failed', 'payment_intent.payment_failed'],
      },
    ],
    end: { status: 'failed', dollars: 0 },
  },
  expired: {
    acts: [
      {
        do: (harness, { topUp }) => harness.control(`sessions/${topUp.sessionId}/expire-now`),
        tells: ['checkout.session.expired'],
      },
    ],
    end: { status: 'expired', dollars: 0 },
  },
  refunded: { acts: [PAY, REFUND], end: { status: 'refunded', dollars: 0 } },
  'refunded, which fails': {
    acts: [PAY, REFUND, { do: failRefund, tells: ['refund.updated', 'refund.failed'] }],
    end: CREDITED,
  },
  'disputed and lost': {
    acts: [PAY, DISPUTE, { do: close('lost'), tells: ['charge.dispute.closed'] }],
    end: { status: 'charged_back', dollars: 0 },
  },
  'disputed and won': {
    acts: [
      PAY,
      DISPUTE,
      {
        do: close('won'),
        tells: ['charge.dispute.closed', 'charge.dispute.funds_reinstated'],
      },
    ],
    end: CREDITED,
  },
} as const satisfies Readonly<Record<string, LifeCycle>>;

export interface Order {
  readonly name: keyof typeof LIFE_CYCLES;
  /** Numbers of the events in order of delivery, and how often each: 0 for never. */
  readonly told: readonly { readonly event: number; readonly times: number }[];
  /** Whether everything has happened before the first event. */
  readonly isOver: boolean;
}

/** Every order of the events of every life cycle; chance decides which are delivered twice or never. */
export function allOrders(random: Random): readonly Order[] {
  const names = Object.keys(LIFE_CYCLES) as (keyof typeof LIFE_CYCLES)[];
  return names.flatMap((name) => {
    const events = LIFE_CYCLES[name].acts.flatMap(({ tells }) => tells);
    return permutations(events.map((_, index) => index)).map((order) => ({
      name,
      told: order.map((event) => ({ event, times: random.pick([0, 1, 1, 1, 2]) })),
      isOver: random.chance(0.5),
    }));
  });
}

export function textOf({ name, told, isOver }: Order): string {
  const words = told
    .filter(({ times }) => times > 0)
    .map(({ event, times }) => event + '!'.repeat(times - 1));
  return `${name}, told ${words.join(' ') || 'nothing'}${isOver ? ', when it was over' : ''}`;
}

/** Runs them all, several at once, and checks each against its final state. */
export async function live(
  harness: TopUpHarness,
  orders: readonly Order[],
  atOnce: number,
): Promise<void> {
  await harness.control('webhooks', { mode: 'drop' });
  const lives: (Life & { order: Order })[] = [];
  const waiting = [...orders];
  const liveOn = async () => {
    for (let order = waiting.pop(); order; order = waiting.pop()) {
      lives.push({ ...(await liveOne(harness, order)), order });
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: atOnce }, liveOn));
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
  await until(async () => (await harness.waitingNotices()) === 0);
  // Reconciliation asks about a checkout after its expiry: it finds a payment before that, but not an early end.
  await harness.database.query(sql.typeAlias('nothing')`
    update farebox.top_ups set session_expires_at = now() where status = 'pending'
  `);
  // On a busy machine, a workflow that it nudged may run longer than a reconciliation.
  await until(async () => (await harness.reconcile()).differing === 0);
  for (const { consumer, topUp, order } of lives) {
    const { end } = LIFE_CYCLES[order.name];
    await harness.statusBecomes(topUp, end.status).catch((error: unknown) => {
      throw new Error(`${textOf(order)}: it is not ${end.status}`, { cause: error });
    });
    const { credited } = await harness.books(consumer);
    assert.equal(credited, end.dollars * 1e6, textOf(order));
  }
  await proveBooks(harness.env);
}

async function liveOne(harness: TopUpHarness, { name, told, isOver }: Order): Promise<Life> {
  const consumer = await harness.newConsumer();
  const life: Life = { consumer, topUp: await harness.checkout(consumer, DOLLARS) };
  const acts: readonly Act[] = LIFE_CYCLES[name].acts;
  const events: (() => Promise<string>)[] = acts.flatMap(({ tells }) =>
    tells.map((type) => () => findEvent(harness, life, type)),
  );
  let happened = 0;
  /** Until the action of the event is done, or all actions. */
  const happen = async (event = Infinity) => {
    let known = acts.slice(0, happened).flatMap(({ tells }) => tells).length;
    for (; happened < acts.length && event >= known; happened += 1) {
      await acts[happened]?.do(harness, life);
      known += acts[happened]?.tells.length ?? 0;
    }
  };
  if (isOver) await happen();
  for (const { event, times } of told) {
    await happen(event);
    if (times === 0) continue;
    const id = (await events[event]?.()) ?? '';
    const tell = () => harness.control(`events/${id}/deliver`);
    await Promise.all(Array.from({ length: times }, tell));
  }
  await happen();
  return life;
}

async function findEvent(harness: TopUpHarness, life: Life, type: EventType): Promise<string> {
  for await (const event of harness.stripe.events.list({ type, limit: 100 })) {
    const object = event.data.object as { id?: unknown; payment_intent?: unknown };
    const { id, payment_intent: intentId } = object;
    const isOf = [id, intentId].includes(life.intentId ?? '') || id === life.topUp.sessionId;
    if (isOf) return event.id;
  }
  throw new Error(`the processor made no ${type}`);
}

function permutations(items: readonly number[]): number[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item) =>
    permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
  );
}
