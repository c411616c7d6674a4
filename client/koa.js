/** Paid routes for Koa: `router.get('/search', paidRoute(farebox, { tool, price }), handler)`. */
import { keepBack, signalOf } from './node-response.js';
import { checkPaid, isRefusal, runPaid } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';
import { serviceKeyOf } from './service-key.js';

export function paidRoute(farebox, options) {
  checkPaid(options);
  return async (context, next) => {
    const written = new Written(context);
    try {
      const { charge } = await runPaid(farebox, options, {
        apiKey: serviceKeyOf(context.req.headers),
        input: [context],
        signal: signalOf(context.res),
        run: async () => {
          written.keep();
          await next();
          await written.end();
          return context;
        },
        hasFailed: ({ status }) => status >= 400,
      });
      written.restore();
      context.set(chargeHeaders(charge));
      written.send();
    } catch (error) {
      written.restore();
      if (!isRefusal(error)) throw error;
      written.ignore();
      const refusal = refusalOf(error);
      context.status = refusal.status;
      context.body = { error: refusal.error };
    }
  };
}

/** What the handler writes to Node's response, past Koa: kept back until it is paid for. */
class Written {
  #context;
  #kept;
  #body;
  #ended;

  constructor(context) {
    this.#context = context;
  }

  keep() {
    this.#ended = new Promise((resolve) => {
      this.#kept = keepBack(this.#context.res, (body) => {
        this.#body = body;
        resolve();
      });
    });
  }

  /** Waits for the end of the response if Koa will not send it. */
  async end() {
    if (this.#context.respond === false) await this.#ended;
  }

  restore() {
    this.#kept?.restore();
  }

  send() {
    if (this.#body) this.#context.res.end(this.#body);
  }

  /** Koa sends a refusal instead, without the handler's headers. What the handler writes after that has no effect. */
  ignore() {
    const { res } = this.#context;
    this.#context.respond = true;
    if (!this.#kept) return;
    this.#kept.forget();
    res.once('finish', this.#kept.silence);
  }
}
