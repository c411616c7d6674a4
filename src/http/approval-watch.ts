/**
 * The requests of a process that wait for decisions. They hold no connection: one query looks for all of them, three
 * times a second, and only while somebody waits.
 */
import type { Requester } from '../charging/batcher.ts';
import { ApiError } from '../domain/errors.ts';
import { findActiveCredentials, type Credential } from '../store/accounts/active-credentials.ts';
import { findEnded, type Approval } from '../store/approvals/approval.ts';
import { settleApprovals } from '../store/approvals/settle-approvals.ts';
import type { Database } from '../store/database.ts';

const LOOK_EVERY_MS = 300;
/** Within this time, every process heeds a change that one of them can read (charging/recent-changes.ts). */
const HEEDED_WITHIN_MS = 1_000;
/** Half of the connections that a process accepts. */
const WAITING_MAX = 5_000;
/** For one account, so that the others can wait too. */
const WAITING_OF_ACCOUNT_MAX = 2_000;

interface Waiter {
  readonly accountId: string;
  readonly credential: Credential;
  readonly requester: Requester;
  readonly untilMs: number;
  readonly wake: (approval: Approval | undefined) => void;
}

export class ApprovalWatch {
  readonly #database: Database;
  readonly #onError: (error: unknown) => void;
  /** By the approval's id. */
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #ofAccount = new Map<string, number>();
  /**
   * When this process first read that an approval was given. The row says when it was decided, which may be long
   * before: a commit takes as long as its disk does.
   */
  readonly #givenSinceMs = new Map<string, number>();
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(database: Database, onError: (error: unknown) => void) {
    this.#database = database;
    this.#onError = onError;
  }

  /**
   * Resolves with the approval when it has ended and everybody has seen it; undefined: not in time, or the
   * key or session of the caller has ended meanwhile.
   */
  async wait(
    id: string,
    accountId: string,
    credential: Credential,
    timeoutMs: number,
    requester: Requester,
  ): Promise<Approval | undefined> {
    if (this.#isStopped || timeoutMs <= 0) return undefined;
    const ofAccount = this.#ofAccount.get(accountId) ?? 0;
    if (this.#waiting >= WAITING_MAX || ofAccount >= WAITING_OF_ACCOUNT_MAX) throw tooMany();
    this.#waiting += 1;
    this.#ofAccount.set(accountId, ofAccount + 1);
    const { promise, resolve: wake } = Promise.withResolvers<Approval | undefined>();
    const untilMs = performance.now() + timeoutMs;
    const waiters = this.#waiters.get(id) ?? new Set();
    this.#waiters.set(id, waiters.add({ accountId, credential, requester, untilMs, wake }));
    this.#timer ??= setTimeout(() => void this.#look(), LOOK_EVERY_MS);
    return promise;
  }

  /** Answers waiting requests at once, and later ones too. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    for (const id of this.#waiters.keys()) this.#wake(id, undefined);
  }

  async #look(): Promise<void> {
    const ids = [...this.#waiters.keys()];
    try {
      await settleApprovals(this.#database, { ids });
      const ended = await findEnded(this.#database, ids);
      const tellable = ended.filter((approval) => this.#isHeeded(approval));
      if (tellable.length > 0) await this.#tell(tellable);
    } catch (error) {
      this.#onError(error);
    }
    const now = performance.now();
    for (const id of ids) {
      const isDue = ({ untilMs, requester }: Waiter) => untilMs <= now || requester.isAbandoned();
      this.#wake(id, undefined, isDue);
    }
    const mayStop = this.#waiters.size === 0 || this.#isStopped;
    this.#timer = mayStop ? undefined : setTimeout(() => void this.#look(), LOOK_EVERY_MS);
  }

  /** Whether a call that was refused before passes in every process now. */
  #isHeeded({ id, status }: Approval): boolean {
    if (status !== 'approved') return true;
    const now = performance.now();
    const sinceMs = this.#givenSinceMs.get(id) ?? now;
    this.#givenSinceMs.set(id, sinceMs);
    return now - sinceMs >= HEEDED_WITHIN_MS;
  }

  async #tell(ended: readonly Approval[]): Promise<void> {
    const waiters = new Set(ended.flatMap(({ id }) => [...(this.#waiters.get(id) ?? [])]));
    const credentials = [...waiters].map(({ credential }) => credential);
    const active = await findActiveCredentials(this.#database, credentials);
    for (const approval of ended) {
      this.#wake(approval.id, approval, ({ credential }) => active.has(credential.id));
      // Not those that came meanwhile: the next look tells them.
      this.#wake(approval.id, undefined, (waiter) => waiters.has(waiter));
    }
  }

  #wake(
    id: string,
    approval: Approval | undefined,
    isDue: (waiter: Waiter) => boolean = () => true,
  ): void {
    const waiters = this.#waiters.get(id) ?? [];
    for (const waiter of waiters) {
      if (!isDue(waiter)) continue;
      const { accountId, wake } = waiter;
      this.#waiters.get(id)?.delete(waiter);
      this.#waiting -= 1;
      const left = (this.#ofAccount.get(accountId) ?? 1) - 1;
      if (left > 0) this.#ofAccount.set(accountId, left);
      else this.#ofAccount.delete(accountId);
      wake(approval);
    }
    if (this.#waiters.get(id)?.size === 0) {
      this.#waiters.delete(id);
      this.#givenSinceMs.delete(id);
    }
  }
}

function tooMany(): ApiError {
  return new ApiError(
    'rate_limited',
    'Too many requests are already waiting for decisions. Try again without wait, or later.',
    { retryAfterSeconds: 5 },
  );
}
