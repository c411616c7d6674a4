/** The books of a FakeFarebox, in memory: balances, charges, refunds and holds, by the rules of the service. */
import { refuseOnDemand } from './fake-magic.js';
import { refuse } from './fake-refusal.js';

const CHARGE_MICROS_MAX = 1_000_000_000_000;
const MICROS_PER_DOLLAR = 1_000_000;

export class FakeLedger {
  developerId = newId('dev');
  /** By key. */
  consumers = new Map();
  /** Charges and holds by id, in the order in which they were made. */
  charges = new Map();
  holds = new Map();
  /** By name. */
  tools = new Map();
  #answers = new Map();

  addConsumer(balance) {
    const apiKey = `fare_ck_test_${randomHex().padEnd(38, 'x')}`;
    this.consumers.set(apiKey, { id: newId('cns'), apiKey, micros: microsOf('balance', balance) });
    return { apiKey, consumerId: this.consumers.get(apiKey).id };
  }

  consumerOf(apiKey, code = 'invalid_api_key') {
    return (
      this.consumers.get(apiKey) ?? refuse(code, 'apiKey must be an active consumer key.', 'apiKey')
    );
  }

  /** What a key made before is answered again; the same key for something else is refused. */
  once(scope, idempotencyKey, request, make) {
    if (idempotencyKey === undefined) return { ...make(), replayed: false };
    const name = JSON.stringify([scope, idempotencyKey]);
    const fingerprint = JSON.stringify(request);
    const known = this.#answers.get(name);
    if (!known) {
      const made = make();
      this.#answers.set(name, { fingerprint, made });
      return { ...made, replayed: false };
    }
    if (known.fingerprint === fingerprint) return { ...known.made, replayed: true };
    return refuse('idempotency_key_reused', 'This Idempotency-Key was used with another body.');
  }

  charge({ apiKey, tool, amount, metadata }, idempotencyKey) {
    const consumer = this.consumerOf(apiKey);
    const sent = amount === undefined ? null : microsOf('amount', amount);
    const request = { tool, sent, metadata };
    return this.once(['charge', consumer.id], idempotencyKey, request, () => {
      const micros = sent ?? this.#priceOf(tool);
      refuseOnDemand(micros, () => refuseForBalance(consumer, 0, micros));
      this.#take(consumer, micros);
      return this.#record(consumer, { tool, micros, metadata });
    });
  }

  refund(chargeId, { amount }, idempotencyKey) {
    const charge = this.charges.get(chargeId) ?? refuse('not_found', 'There is no such charge.');
    const asked = amount === undefined ? null : microsOf('amount', amount);
    return this.once(['refund', chargeId], idempotencyKey, { asked }, () => {
      const left = charge.micros - charge.refunded;
      if (left === 0 || (asked ?? 0) > left) {
        const message = `Only ${left / MICROS_PER_DOLLAR} of the charge is left to refund.`;
        const facts = { refundable: left / MICROS_PER_DOLLAR };
        refuse('refund_exceeds_charge', message, asked === null ? undefined : 'amount', facts);
      }
      const micros = asked ?? left;
      charge.refunded += micros;
      charge.consumer.micros += micros;
      return { id: newId('rf'), chargeId, micros, refunded: charge.refunded, createdAt: now() };
    });
  }

  place({ apiKey, tool, amount, expiresIn = 600, metadata }, idempotencyKey) {
    const consumer = this.consumerOf(apiKey);
    const sent = amount === undefined ? null : microsOf('amount', amount);
    const request = { tool, sent, expiresIn, metadata };
    return this.once(['hold', consumer.id], idempotencyKey, request, () => {
      const micros = sent ?? this.#priceOf(tool);
      refuseOnDemand(micros, () => refuseForBalance(consumer, 0, micros));
      this.#take(consumer, micros);
      const createdAt = now();
      const hold = { id: newId('hld'), consumer, tool, micros, captured: 0, remaining: micros };
      Object.assign(hold, { state: 'open', createdAt, metadata: metadata ?? null });
      hold.expiresMs = Date.parse(createdAt) + expiresIn * 1_000;
      this.holds.set(hold.id, hold);
      return { hold, balance: consumer.micros };
    });
  }

  capture(holdId, { amount, final = true, over = 'reject', metadata }, idempotencyKey) {
    const hold = this.holdOf(holdId);
    const sent = amount === undefined ? null : microsOf('amount', amount);
    const request = { sent, final, over, metadata };
    return this.once(['capture', holdId], idempotencyKey, request, () => {
      this.#assertOpen(hold);
      const { consumer, tool, remaining } = hold;
      const asked = sent ?? remaining;
      if (asked > remaining && over === 'reject') {
        const message = `Only ${remaining / MICROS_PER_DOLLAR} of the hold is left.`;
        const facts = { remaining: remaining / MICROS_PER_DOLLAR };
        refuse('exceeds_hold', message, 'amount', facts);
      }
      if (asked > remaining && over === 'overflow') this.#take(consumer, asked - remaining);
      const micros = over === 'overflow' ? asked : Math.min(asked, remaining);
      hold.captured += micros;
      hold.remaining -= Math.min(micros, remaining);
      if (final || hold.remaining === 0) this.#close(hold, 'captured');
      const charge = this.#record(consumer, { tool, micros, metadata, holdId });
      return { ...charge, hold };
    });
  }

  release(holdId) {
    const hold = this.holdOf(holdId);
    if (this.stateOf(hold) !== 'released') {
      this.#assertOpen(hold);
      this.#close(hold, 'released');
    }
    return { hold, replayed: false };
  }

  extend(holdId, { expiresIn }, idempotencyKey) {
    const hold = this.holdOf(holdId);
    return this.once(['extend', holdId], idempotencyKey, { expiresIn }, () => {
      this.#assertOpen(hold);
      const latestMs = Date.parse(hold.createdAt) + 86_400_000;
      const asked = Math.min(Date.now() + expiresIn * 1_000, latestMs);
      hold.expiresMs = Math.max(hold.expiresMs, asked);
      return { hold };
    });
  }

  holdOf(id) {
    return this.holds.get(id) ?? refuse('hold_not_found', 'There is no such hold.');
  }

  /** A hold whose time is over gives back what it reserves. */
  stateOf(hold) {
    if (hold.state === 'open' && Date.now() >= hold.expiresMs) this.#close(hold, 'expired');
    return hold.state;
  }

  expireHolds() {
    for (const hold of this.holds.values()) this.stateOf(hold);
  }

  #assertOpen(hold) {
    const status = this.stateOf(hold);
    if (status === 'open') return;
    const message = `The hold is ${status}, so nothing is left to capture or release.`;
    refuse('hold_closed', message, undefined, { status });
  }

  #close(hold, state) {
    hold.consumer.micros += hold.remaining;
    Object.assign(hold, { state, remaining: 0 });
  }

  #priceOf(name) {
    const tool = this.tools.get(name);
    if (!tool) refuse('unknown_tool', 'The tool is not registered: pass an amount.', 'tool');
    if (tool.archived) refuse('tool_archived', 'The tool is archived: pass an amount.', 'tool');
    if (tool.micros !== null) return tool.micros;
    return refuse('invalid_amount', 'The tool has no price, so amount is required.', 'amount');
  }

  #take(consumer, micros) {
    this.expireHolds();
    if (consumer.micros < micros) refuseForBalance(consumer, consumer.micros, micros);
    consumer.micros -= micros;
  }

  #record(consumer, { tool, micros, metadata = null, holdId }) {
    const charge = { id: newId('chg'), consumer, tool, micros, metadata, holdId, refunded: 0 };
    Object.assign(charge, { createdAt: now() });
    this.charges.set(charge.id, charge);
    return { charge, balance: consumer.micros };
  }
}

function refuseForBalance(consumer, left, micros) {
  const [balance, required, shortfall] = [left, micros, micros - left].map(
    (each) => each / MICROS_PER_DOLLAR,
  );
  const topUpUrl = `https://fake.farebox.example/top-up?link=${consumer.id}`;
  const message = `The balance of $${balance} does not cover $${required}; the consumer has to top up.`;
  refuse('insufficient_balance', message, undefined, { balance, required, shortfall, topUpUrl });
}

/** Whole micro-dollars of a number or a decimal string. */
export function microsOf(param, dollars) {
  const micros = Math.round(Number(dollars) * MICROS_PER_DOLLAR);
  const isExact =
    typeof dollars === 'string'
      ? /^\d+(\.\d{1,6})?$/.test(dollars)
      : micros / MICROS_PER_DOLLAR === dollars;
  const isAllowed = param === 'balance' ? micros >= 0 : micros > 0 && micros <= CHARGE_MICROS_MAX;
  if (isExact && isAllowed) return micros;
  const message = `${param} is ${JSON.stringify(dollars)}. It must be more than $0, with at most six decimals.`;
  return refuse('invalid_amount', message, param);
}

export function newId(prefix) {
  return `${prefix}_${randomHex()}`;
}

function randomHex() {
  return crypto.randomUUID().replaceAll('-', '');
}

export function now() {
  return new Date().toISOString();
}
