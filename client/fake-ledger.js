/** The books of a FakeFarebox, in memory: balances, charges, refunds and holds, by the rules of the service. */
import { FakeApprovals } from './fake-approvals.js';
import { FakeBudgets, giveBack } from './fake-budgets.js';
import { chargeableCostBy, chargeableCostOf } from './fake-cards.js';
import { refuseOnDemand } from './fake-magic.js';
import { refuse } from './fake-refusal.js';
import {
  comparable,
  findMicros,
  formatDollars,
  microsOf,
  newId,
  newKey,
  newTool,
  now,
} from './fake-values.js';

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
  budgets = new FakeBudgets(this.developerId);
  approvals = new FakeApprovals();
  #answers = new Map();

  addConsumer(balance) {
    const apiKey = newKey();
    this.consumers.set(apiKey, { id: newId('cns'), apiKey, micros: microsOf('balance', balance) });
    return { apiKey, consumerId: this.consumers.get(apiKey).id };
  }

  /** The consumer that a key pays for, and the spend key if it is one; undefined for any other key. */
  findPayer(apiKey) {
    const key = this.budgets.activeKey(apiKey);
    const consumer = key?.consumer ?? this.consumers.get(apiKey);
    return consumer && { consumer, key };
  }

  /** The same for a key that a developer names. */
  payerOf(apiKey) {
    return this.findPayer(apiKey) ?? refuseKey();
  }

  /** Also of a spend key that has ended: what it made is still answered. */
  ownerOf(apiKey) {
    return this.budgets.keys.get(apiKey)?.consumer ?? this.consumers.get(apiKey) ?? refuseKey();
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

  charge(body, idempotencyKey) {
    const { apiKey, tool, metadata } = body;
    const consumer = this.ownerOf(apiKey);
    const request = { tool, ...comparable(body) };
    this.#note(body);
    return this.once(['charge', consumer.id], idempotencyKey, request, () => {
      const payer = this.payerOf(apiKey);
      const { micros, card } = this.#priceFor(body);
      const call = { tool, micros };
      const facts = this.#factsOf(call);
      if (body.units === undefined) {
        refuseOnDemand(micros, facts, () => refuseForBalance(consumer, 0, micros, facts));
      }
      const counted = this.#take(payer, call);
      return this.#record(payer, { tool, micros, card, metadata, counted });
    });
  }

  refund(chargeId, { amount }, idempotencyKey) {
    // The charge's own amount is the limit.
    const max = Number.MAX_SAFE_INTEGER;
    const asked = amount === undefined ? null : microsOf('amount', amount, max);
    const charge = this.charges.get(chargeId) ?? refuse('not_found', 'There is no such charge.');
    return this.once(['refund', chargeId], idempotencyKey, { asked }, () => {
      const left = charge.micros - charge.refunded;
      if (left === 0 || (asked ?? 0) > left) {
        const message =
          left === 0
            ? 'The charge has been refunded in full.'
            : `Only ${formatDollars(left)} of the charge is left to refund.`;
        const facts = { refundable: left / MICROS_PER_DOLLAR };
        refuse('refund_exceeds_charge', message, asked === null ? undefined : 'amount', facts);
      }
      const micros = asked ?? left;
      charge.refunded += micros;
      charge.consumer.micros += micros;
      giveBack(charge.counted, micros);
      const createdAt = now();
      charge.refunds.push({ micros: -micros, createdAt });
      return { id: newId('rf'), chargeId, micros, refunded: charge.refunded, createdAt };
    });
  }

  place(body, idempotencyKey) {
    const { apiKey, tool, expiresIn, metadata } = body;
    const consumer = this.ownerOf(apiKey);
    const request = { tool, expiresIn, ...comparable(body) };
    this.#note(body);
    return this.once(['hold', consumer.id], idempotencyKey, request, () => {
      const payer = this.payerOf(apiKey);
      const { key } = payer;
      const { micros, card } = this.#priceFor(body);
      const call = { tool, micros };
      const facts = this.#factsOf(call);
      if (body.units === undefined) {
        refuseOnDemand(micros, facts, () => refuseForBalance(consumer, 0, micros, facts));
      }
      const counted = this.#take(payer, call);
      const createdAt = now();
      const hold = {
        id: newId('hld'),
        consumer,
        key,
        counted,
        tool,
        card,
        micros,
        captured: 0,
        remaining: micros,
      };
      Object.assign(hold, { state: 'open', createdAt, metadata: metadata ?? null });
      hold.expiresMs = Date.parse(createdAt) + (expiresIn ?? 600) * 1_000;
      this.holds.set(hold.id, hold);
      return { hold, balance: consumer.micros };
    });
  }

  capture(holdId, body, idempotencyKey) {
    const { amount, units, final = true, over = 'reject', metadata } = body;
    if (amount !== undefined && units !== undefined) refuseBoth();
    const sent = amount === undefined ? undefined : microsOf('amount', amount);
    const hold = this.holdOf(holdId);
    const request = { final, over, ...comparable(body) };
    return this.once(['capture', holdId], idempotencyKey, request, () => {
      const { tool, remaining } = hold;
      const cost = units && this.#costOfCapture(hold, units);
      this.#assertOpen(hold);
      const asked = cost?.micros ?? sent ?? remaining;
      if (asked > remaining && over === 'reject') {
        const message = `Only ${formatDollars(remaining)} of the hold is left.`;
        const facts = { remaining: remaining / MICROS_PER_DOLLAR };
        refuse('exceeds_hold', message, 'amount', facts);
      }
      if (asked > remaining && over === 'overflow') this.#takeMore(hold, asked);
      const micros = over === 'overflow' ? asked : Math.min(asked, remaining);
      hold.captured += micros;
      hold.remaining -= Math.min(micros, remaining);
      if (final || hold.remaining === 0) this.#close(hold, 'captured');
      const { counted } = hold;
      const { card } = cost ?? {};
      const charge = this.#record(hold, { tool, micros, card, metadata, holdId, counted });
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

  heldOf(consumer) {
    const holds = [...this.holds.values()].filter((hold) => hold.consumer === consumer);
    return holds.reduce((sum, { remaining }) => sum + remaining, 0);
  }

  /** Releases the holds of keys that have ended. */
  releaseHoldsOf(isOf) {
    for (const hold of this.holds.values()) {
      if (hold.key && isOf(hold.key) && this.stateOf(hold) === 'open')
        this.#close(hold, 'released');
    }
  }

  #assertOpen(hold) {
    const status = this.stateOf(hold);
    if (status === 'open') return;
    const message = `The hold is closed: its status is ${status}. Place a new hold.`;
    refuse('hold_closed', message, undefined, { status });
  }

  #close(hold, state) {
    hold.consumer.micros += hold.remaining;
    giveBack(hold.counted, hold.remaining);
    Object.assign(hold, { state, remaining: 0 });
  }

  /**
   * A name that is charged with an amount is known from then on, without a price, even if the call is refused, such as
   * for its idempotency key. A key or an amount that is not valid names nothing.
   */
  #note({ apiKey, tool, amount, units }) {
    const isActive = this.budgets.activeKey(apiKey) ?? this.consumers.has(apiKey);
    const isStated = amount !== undefined && units === undefined;
    if (this.tools.has(tool) || !isStated || !isActive) return;
    if (findMicros('amount', amount) !== undefined) this.tools.set(tool, newTool(tool));
  }

  #priceFor({ tool, amount, units }) {
    const stated = amount === undefined ? undefined : microsOf('amount', amount);
    if (units === undefined) return { micros: stated ?? this.priceOf(tool) };
    if (stated !== undefined) refuseBoth();
    return chargeableCostOf(this.tools.get(tool), units);
  }

  /** By the card that priced the hold, or the tool's current one if the hold was placed by an amount. */
  #costOfCapture({ tool, card }, units) {
    return card ? chargeableCostBy(card, units) : chargeableCostOf(this.tools.get(tool), units);
  }

  priceOf(name) {
    const tool = this.tools.get(name);
    if (!tool) refuse('unknown_tool', 'The tool is not registered: send an amount.', 'tool');
    if (tool.archived) refuse('tool_archived', 'The tool is archived: send an amount.', 'tool');
    if (tool.micros !== null) return tool.micros;
    return refuse(
      'invalid_amount',
      'The tool has no price: send an amount, or units if it has a rate card.',
      'amount',
    );
  }

  /** What refuses the call now, a budget or the balance; undefined when nothing does. */
  refusalOf({ consumer, key }, call, once) {
    this.expireHolds();
    const ofBudget = key && this.budgets.refusalOf(key, call, once);
    if (ofBudget || consumer.micros >= call.micros) return ofBudget;
    return { code: 'insufficient_balance' };
  }

  /** Takes it from the balance and counts it at the budgets. */
  #take(payer, call) {
    const { consumer, key } = payer;
    const uses = [];
    const refusal = this.refusalOf(payer, call, (found) => {
      const approval = this.approvals.onceFor(key, call, found);
      if (approval) uses.push(approval);
      return approval !== undefined;
    });
    const facts = this.#factsOf(call);
    if (refusal?.node) {
      const { code, message, param, isAskable } = refusal;
      refuse(code, message, param, { ...refusal.facts, ...(isAskable && facts) });
    }
    if (refusal) refuseForBalance(consumer, consumer.micros, call.micros, facts);
    for (const approval of uses) approval.isUsed = true;
    consumer.micros -= call.micros;
    return this.budgets.count(key, call.micros);
  }

  /** What the holder of a spend key needs in order to ask for an approval. */
  #factsOf({ tool, micros }) {
    return { developerId: this.developerId, tool, required: micros / MICROS_PER_DOLLAR };
  }

  /** Only if a new charge by the same key would be allowed too; no approval is used up. */
  #takeMore({ consumer, key, tool, remaining, captured }, asked) {
    if (key && !this.budgets.mayExceed(key, tool)) {
      const facts = { remaining: remaining / MICROS_PER_DOLLAR };
      refuse('exceeds_hold', 'The key may not be charged any more.', 'amount', facts);
    }
    const micros = asked - remaining;
    const refusal = this.refusalOf({ consumer, key }, { tool, micros, perCall: captured + asked });
    if (refusal?.node) refuse(refusal.code, refusal.message, refusal.param, refusal.facts);
    if (refusal) refuseForBalance(consumer, consumer.micros, micros);
    consumer.micros -= micros;
    this.budgets.count(key, micros);
  }

  #record({ consumer, key }, { metadata = null, card, ...made }) {
    const charge = { id: newId('chg'), consumer, key, metadata, ...made, refunded: 0 };
    Object.assign(charge, { cardVersion: card?.version, createdAt: now(), refunds: [] });
    this.charges.set(charge.id, charge);
    return { charge, balance: consumer.micros };
  }
}

function refuseForBalance(consumer, left, micros, facts) {
  const [balance, required, shortfall] = [left, micros, micros - left].map(
    (each) => each / MICROS_PER_DOLLAR,
  );
  const topUpUrl = `https://fake.farebox.example/top-up?link=${consumer.id}`;
  const message = `The balance of ${formatDollars(left)} does not cover ${formatDollars(micros)}; the consumer has to top up.`;
  const all = { balance, required, shortfall, topUpUrl, ...facts };
  refuse('insufficient_balance', message, undefined, all);
}

function refuseBoth() {
  refuse('invalid_request', 'Send either amount or units.', 'units');
}

function refuseKey() {
  refuse('invalid_api_key', 'apiKey must be an active consumer key or spend key.', 'apiKey');
}
