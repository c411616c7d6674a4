/** The part of Koa's context that paid routes need for handlers that write to Node's response. */
import { keepBack } from './node-response.js';

/** What the handler writes to Node's response, past Koa: kept back until it is paid for. */
export class Written {
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
