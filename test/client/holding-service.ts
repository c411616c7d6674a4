/** Answers holds like the service, over HTTP and in memory: one balance, and one winner for each hold. */
import { answer, ScriptedService, type SeenRequest, type Step } from './scripted-service.ts';

interface Hold {
  readonly id: string;
  readonly amount: number;
  status: 'open' | 'captured' | 'released';
}

interface HoldBody {
  readonly tool: string;
  readonly amount?: number | string;
  readonly expiresIn?: number;
}

/** Faults of a request: before it is decided, or in its answer afterwards. */
export type Accident = 'request lost' | 'answer lost' | 'busy' | undefined;

export class HoldingService {
  readonly holds: Hold[] = [];
  readonly charges: { holdId: string; amount: number }[] = [];
  readonly seen: SeenRequest[] = [];
  balance = 10;
  accident: () => Accident = () => undefined;
  readonly #answers = new Map<string, { status: number; body: object }>();

  start(): Promise<ScriptedService> {
    return ScriptedService.start(this.#step);
  }

  readonly #step: Step = (response, request) => {
    const accident = this.accident();
    if (accident === 'busy') {
      const error = { code: 'service_unavailable', message: 'Busy.' };
      return answer(503, { error }, { 'retry-after': '0' })(response, request);
    }
    if (accident === 'request lost') return response.destroy();
    const { status, body } = this.#once(request);
    if (accident === 'answer lost') return response.destroy();
    return answer(status, body)(response, request);
  };

  /** The same key gets the same answer; a refusal is not stored. */
  #once(request: SeenRequest): { status: number; body: object } {
    const key = `${request.path} ${String(request.headers['idempotency-key'])}`;
    const known = this.#answers.get(key);
    if (known) return known;
    this.seen.push(request);
    const made = this.#decide(request);
    if (made.status < 300) this.#answers.set(key, made);
    return made;
  }

  #decide({ path = '', body }: SeenRequest): { status: number; body: object } {
    const { amount, tool } = body as HoldBody;
    const [, id, act] = /^\/v1\/holds\/(\w+)\/(\w+)$/.exec(path) ?? [];
    if (path === '/v1/holds') return this.#place(tool, Number(amount));
    const hold = this.holds.find((each) => each.id === id);
    if (!hold) return refusal(404, 'hold_not_found');
    if (act === 'release' && hold.status === 'released') return { status: 200, body: { ...hold } };
    if (hold.status !== 'open') return refusal(409, 'hold_closed', { status: hold.status });
    hold.status = act === 'release' ? 'released' : 'captured';
    const taken = act === 'release' ? 0 : Math.min(Number(amount ?? hold.amount), hold.amount);
    this.balance += hold.amount - taken;
    if (act === 'release') return { status: 200, body: { ...hold } };
    this.charges.push({ holdId: hold.id, amount: taken });
    const charge = { id: `chg_${this.charges.length}`, amount: taken, receipt: `r.${hold.id}` };
    return { status: 201, body: { ...charge, balance: this.balance, holdId: hold.id, hold } };
  }

  #place(tool: string, amount: number): { status: number; body: object } {
    if (amount > this.balance) {
      const shortfall = amount - this.balance;
      const facts = { balance: this.balance, required: amount, shortfall, topUpUrl: 'http://pay' };
      return refusal(402, 'insufficient_balance', facts);
    }
    this.balance -= amount;
    const hold: Hold = { id: `hld_${this.holds.length + 1}`, amount, status: 'open' };
    this.holds.push(hold);
    return { status: 201, body: { ...hold, tool, balance: this.balance } };
  }
}

function refusal(status: number, code: string, facts: object = {}) {
  return { status, body: { error: { code, message: `It is ${code}.`, ...facts } } };
}
