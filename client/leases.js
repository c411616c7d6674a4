/** Leases as the service has them. `farebox.lease()` spends them call by call. */
import { hasId, hasResults, prepare } from './calls.js';
import { idInPath, listAt } from './list.js';
import { amountToSend } from './money.js';
import { checkMembers, membersOf } from './settings.js';

const LEASE = { noun: 'lease', done: 'held', isDone: isLease };
const RENEWAL = { noun: 'change', done: 'done', isDone: isLease };
const TAKEN = ['apiKey', 'tools', 'amount', 'expiresIn', 'idempotencyKey'];
const RENEWED = ['leaseId', 'fence', 'expiresIn', 'idempotencyKey'];
const SETTLED = ['leaseId', 'entries', 'fence', 'final'];
const ENTRY = ['sequence', 'tool', 'amount', 'metadata'];
const RELEASE = { noun: 'change', done: 'done', isDone: hasId };

export class Leases {
  #calls;

  constructor(calls) {
    this.#calls = calls;
  }

  async take(request, options) {
    const { idempotencyKey = crypto.randomUUID(), ...lease } = membersOf(request, TAKEN);
    const body = prepare(LEASE, () => {
      this.#calls.checkApiKey(lease.apiKey);
      const tools = lease.tools.map((tool, n) =>
        typeof tool === 'string'
          ? tool
          : { ...membersOf(tool, ['name']), price: amountToSend(tool.price, `tools.${n}.price`) },
      );
      return { ...lease, tools, amount: amountToSend(lease.amount) };
    });
    return this.#write('/v1/leases', body, LEASE, options, idempotencyKey);
  }

  /** Needs no idempotency key: the number of an entry names its charge. */
  async settle(request, options) {
    const { leaseId, entries, ...others } = membersOf(request, SETTLED);
    const path = `/v1/leases/${idInPath(leaseId)}/settle`;
    const amounts = entries.map((entry, n) => ({
      ...membersOf(entry, ENTRY),
      amount: amountToSend(entry.amount, `entries.${n}.amount`),
    }));
    const isDone = hasResults(entries.length, isResult);
    const effect = { noun: 'settlement', done: 'charged', isDone };
    return this.#write(path, { ...others, entries: amounts }, effect, options);
  }

  async renew(request, options) {
    const members = membersOf(request, RENEWED);
    const { leaseId, idempotencyKey = crypto.randomUUID(), ...body } = members;
    const path = `/v1/leases/${idInPath(leaseId)}/renew`;
    return this.#write(path, body, RENEWAL, options, idempotencyKey);
  }

  async release(request, options) {
    checkMembers('a release', request, ['leaseId']);
    const path = `/v1/leases/${idInPath(request.leaseId)}/release`;
    return this.#write(path, undefined, RELEASE, options);
  }

  list(filter, options) {
    return listAt(this.#calls, '/v1/leases', 'leases', filter, [], options);
  }

  get(id, options) {
    return this.#calls.get(`/v1/leases/${idInPath(id)}`, {}, options);
  }

  async #write(path, body, effect, options, idempotencyKey) {
    const asked = { method: 'POST', path, body, idempotencyKey };
    return (await this.#calls.write(asked, effect, options)).json;
  }
}

/** It has what `farebox.lease()` spends it by. */
function isLease(json) {
  const { remaining, fence, expiresIn, tools } = json;
  const areNumbers = [remaining, fence, expiresIn].every(Number.isFinite);
  return hasId(json) && areNumbers && Array.isArray(tools) && tools.every(isTool);
}

function isTool(tool) {
  return typeof tool?.name === 'string' && Number.isFinite(tool.price);
}

function isResult(result) {
  return result?.status === 201 || typeof result?.error?.code === 'string';
}
