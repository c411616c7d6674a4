/**
 * Failures of the database that the library answers as refusals, or as its own errors, and reports only to
 * its log. They are thrown in place of the answer, so that a right passkey is not called wrong.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { isDatabaseUnavailable } from '../store/failures.ts';

export class ReportedFailures {
  readonly #requests = new AsyncLocalStorage<{ failure?: unknown }>();

  /** Something that the library has logged. */
  note(error: unknown): void {
    const request = this.#requests.getStore();
    if (request && isDatabaseUnavailable(error)) request.failure = error;
  }

  /** Answers a request. Throws the failure in place of an error response. */
  async throwing(answer: () => Promise<Response>): Promise<Response> {
    const request: { failure?: unknown } = {};
    const response = await this.#requests.run(request, answer);
    if (response.status >= 400 && request.failure !== undefined) throw request.failure;
    return response;
  }
}
