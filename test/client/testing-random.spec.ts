/** The fake answers as the service does: both get the same random requests, right and wrong ones. */
import assert from 'node:assert/strict';
import { FareboxError } from '@farebox/client';
import { Random, SEED } from '../support/random.ts';
import { fakeService, realService, type Ground } from './grounds.ts';

const REQUESTS = 250;

const AMOUNTS = [1, 0.5, '0.25', '1.50', 2, 0.000001, '0.000001', 9, undefined] as const;
const BAD_AMOUNTS = [
  0,
  -1,
  0.1 + 0.2,
  '0',
  '-1',
  '1e-3',
  '',
  ' 1',
  '1.',
  '.5',
  '01',
  '+1',
  'x',
  1e-7,
  '0.0000001',
];
const LARGE_AMOUNTS = [1_000_000, 1_000_001, '1000000.000001', 1e21, '9'.repeat(40)];
/** Units of the tool `llm`, whose card changes. Most other tools have no card. */
const UNITS = [{ input: 7 }, { input: 250_000, output: 3 }, { output: 1 }, { free: 2, input: 0 }];
const BAD_UNITS: readonly unknown[] = [
  null,
  [],
  7,
  {},
  { input: 1.5 },
  { input: -1 },
  { input: 1e13 },
  { pages: 1 },
  { constructor: 1 },
  { '1': 1 },
  { input: 1e12, output: 1e12 },
];
const CARDS = [
  { input: 0.0000025, output: '0.00001', free: 0 },
  { output: 1e-12, input: '0.0000005' },
  { input: '0.000000500000', output: '0.000000000001' },
  null,
  undefined,
];
const BAD_CARDS = [
  7,
  {},
  { input: -1 },
  { input: 'x' },
  { input: 1_001 },
  { '1': 1 },
  { a: 1e-13 },
];
const TOOLS = [
  'llm',
  'search',
  'translate',
  'other',
  'Ünicode 😀',
  '__proto__',
  'constructor',
  'archived',
];
const BAD_TOOLS = ['', ' ', 'a\nb', 'x'.repeat(101), 7, null, {}, '\ud800', '\u202e', undefined];
const METADATA = [
  undefined,
  {},
  { a: 1, b: 'x' },
  { b: 'x', a: 1 },
  { a: null },
  JSON.parse('{"__proto__":1}'),
];
const BAD_METADATA = [
  null,
  [],
  'x',
  7,
  { a: {} },
  { a: [1] },
  { '': 1 },
  { a: 'x'.repeat(501) },
  { a: '\0' },
];
/** Nothing expires while the test runs. */
const SECONDS = [undefined, 600, 3_600, 86_400];
const BAD_SECONDS = [0, -1, 1.5, 86_401, '60', null];

type Answer = Record<string, unknown>;

/** What both must say; ids, times and texts are their own. */
const SAID = [
  'paid',
  'amount',
  'balance',
  'replayed',
  'captured',
  'remaining',
  'refunded',
  'status',
  'tool',
  'metadata',
  'price',
  'archived',
  'card',
  'cardVersion',
  'total',
  'totalEarnings',
  'byTool',
  'code',
  'outcome',
  'param',
  'required',
  'shortfall',
  'refundable',
  'objectStatus',
];

function said(answer: Answer): Answer {
  const facts = Object.entries(answer).filter(
    ([name, value]) => SAID.includes(name) && value !== undefined,
  );
  const { hold, error, results } = answer as { hold?: Answer; error?: Answer; results?: Answer[] };
  return {
    ...Object.fromEntries(facts),
    ...(hold && { hold: said(hold) }),
    ...(error && { error: said(error) }),
    ...(results && { results: results.map(said) }),
  };
}

/** One of the two: what it has made, in the order in which it was made. */
class Side {
  readonly ground: Ground;
  readonly holds: string[] = [];
  readonly charges: string[] = [];
  readonly tools: string[] = [];

  constructor(ground: Ground) {
    this.ground = ground;
  }

  async ask(request: Request): Promise<Answer> {
    try {
      const answer = (await request(this)) as Answer;
      this.#keep(answer);
      for (const result of (answer['results'] as Answer[] | undefined) ?? []) this.#keep(result);
      return said(answer);
    } catch (error) {
      if (!FareboxError.isInstance(error)) throw error;
      return said({ ...error.toJSON(), isError: true });
    }
  }

  #keep({ id, hold }: Answer): void {
    for (const made of [id, (hold as Answer | undefined)?.['id']]) {
      if (typeof made !== 'string') continue;
      const list = { hld: this.holds, chg: this.charges, tool: this.tools }[
        made.split('_')[0] ?? ''
      ];
      if (list && !list.includes(made)) list.push(made);
    }
  }
}

type Request = (side: Side) => Promise<unknown>;

/** A request that both sides get: nothing in it is random any more. */
function draw(random: Random): [string, Request] {
  const isBad = random.chance(0.25);
  const among = (good: readonly unknown[], bad: readonly unknown[]) =>
    random.pick(isBad && random.chance(0.5) ? bad : good) as never;
  const anAmount = among(AMOUNTS, random.chance(0.8) ? BAD_AMOUNTS : LARGE_AMOUNTS);
  const aTool = among(TOOLS, BAD_TOOLS);
  const isOfUnits = random.chance(0.3);
  const tool = (isOfUnits && random.chance(0.8) ? 'llm' : aTool) as never;
  const units = isOfUnits ? among(UNITS, BAD_UNITS) : undefined;
  const amount = (isOfUnits && random.chance(0.9) ? undefined : anAmount) as never;
  const card = among(CARDS, BAD_CARDS);
  const metadata = among(METADATA, BAD_METADATA);
  const expiresIn = among(SECONDS, BAD_SECONDS);
  const idempotencyKey = random.chance(0.4) ? `key ${random.between(1, 12)}` : undefined;
  const key = idempotencyKey !== undefined && { idempotencyKey };
  const at = random.next();
  const one = (ids: readonly string[], prefix: string) =>
    ids[Math.floor(at * (ids.length + 1))] ?? `${prefix}_${'0'.repeat(32)}`;
  const final = random.pick([undefined, undefined, true, false]);
  const over = random.pick([undefined, 'reject', 'cap', 'overflow'] as const);
  const spoiled = isBad && random.chance(0.1);
  const keyOf = ({ ground }: Side) => (spoiled ? `${ground.apiKey}x` : ground.apiKey);
  const charge = (side: Side) => ({ apiKey: keyOf(side), tool, amount, units, metadata, ...key });
  const capture = (side: Side) => ({
    holdId: one(side.holds, 'hld'),
    amount,
    units,
    final,
    over,
    metadata,
    ...key,
  });
  const hold = (side: Side) => ({ ...charge(side), expiresIn });
  const op = random.weighted({
    charge: 8,
    hold: 6,
    capture: 8,
    release: 3,
    extend: 2,
    refund: 4,
    batch: 4,
    tool: 2,
    change: 2,
    quote: 1,
    topUp: 1,
    list: 2,
    get: 2,
    sums: 2,
  });
  const requests: Record<typeof op, Request> = {
    charge: (side) => side.ground.farebox.charge(charge(side)),
    hold: (side) => side.ground.farebox.holds.place(hold(side)),
    capture: (side) => side.ground.farebox.holds.capture(capture(side)),
    release: ({ ground, holds }) => ground.farebox.holds.release({ holdId: one(holds, 'hld') }),
    extend: ({ ground, holds }) =>
      ground.farebox.holds.extend({ holdId: one(holds, 'hld'), expiresIn, ...key }),
    refund: ({ ground, charges }) =>
      ground.farebox.refund({ chargeId: one(charges, 'chg'), amount, ...key }),
    batch: async (side) => ({
      results: await side.ground.farebox.batch([
        charge(side),
        // A hold with the key of a charge beside it is decided last.
        { op: 'hold', ...hold(side), idempotencyKey: `${idempotencyKey ?? at} of a hold` },
        { op: 'capture', ...capture(side) },
        { op: 'release', holdId: one(side.holds, 'hld') },
      ]),
    }),
    tool: ({ ground }) => ground.farebox.tools.create({ name: tool, price: amount, card }),
    change: ({ ground, tools }) =>
      ground.farebox.tools.update(one(tools, 'tool'), { price: amount, card, archived: final }),
    quote: ({ ground }) => ground.farebox.quote({ tool, units }),
    topUp: ({ ground }) => ground.consumer.topUp({ amount, ...key }),
    list: async ({ ground }) => {
      // Charges of one batch have no order among themselves, so a page may end between them.
      const charges: object[] = [];
      for await (const each of ground.farebox.charges.list()) charges.push(each);
      return {
        results: charges.toSorted((a, b) =>
          JSON.stringify(said(a as never)) < JSON.stringify(said(b as never)) ? -1 : 1,
        ),
      };
    },
    get: ({ ground, holds }) => ground.farebox.holds.get(one(holds, 'hld')),
    sums: async ({ ground }) => ({
      ...(await ground.farebox.earnings()),
      ...(await ground.consumer.balance()),
      total: (await ground.consumer.charges.list().page()).total,
    }),
  };
  const shown = {
    op,
    amount,
    units,
    tool,
    card,
    metadata,
    expiresIn,
    final,
    over,
    ...key,
    at,
    spoiled,
  };
  return [JSON.stringify(shown), requests[op]];
}

const createLlm: Request = ({ ground }) =>
  ground.farebox.tools.create({ name: 'llm', card: { input: 0.0000025, output: '0.00001' } });

describe('client: the fake and the service', () => {
  const service = realService();
  before(() => service.start());
  after(() => service.stop());

  it(`answer ${REQUESTS} random requests alike (SEED=${SEED})`, async () => {
    const random = new Random(SEED);
    const real = new Side(await service.open());
    const fake = new Side(await fakeService().open());
    assert.deepEqual(await fake.ask(createLlm), await real.ask(createLlm));
    for (let n = 1; n <= REQUESTS; n += 1) {
      const [shown, request] = draw(random);
      const [expected, actual] = [await real.ask(request), await fake.ask(request)];
      assert.deepEqual(actual, expected, `request ${n}: ${shown}`);
    }
  });
});
