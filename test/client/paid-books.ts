/** What the service has on record of one account that pays itself, for tests of paid calls. */
import type { TestAccount } from '../support/accounts.ts';
import { read } from '../support/http.ts';

interface RecordedCharge {
  readonly id: string;
  readonly amount: number;
  readonly receipt: string;
  readonly holdId: string | null;
}

export class PaidBooks {
  readonly #url: string;
  readonly #account: TestAccount;

  constructor(api: { readonly url: string }, account: TestAccount) {
    this.#url = api.url;
    this.#account = account;
  }

  async balance(): Promise<number> {
    const { consumerKey } = this.#account;
    return (await read<{ balance: number }>(`${this.#url}/v1/balance`, consumerKey)).balance;
  }

  /** The newest first. */
  async charges(): Promise<readonly RecordedCharge[]> {
    const { developerKey } = this.#account;
    const url = `${this.#url}/v1/charges`;
    return (await read<{ charges: RecordedCharge[] }>(url, developerKey)).charges;
  }

  /** The statuses of the account's holds, the newest first. */
  async holds(): Promise<readonly string[]> {
    const { developerKey } = this.#account;
    const url = `${this.#url}/v1/holds`;
    const { holds } = await read<{ holds: { status: string }[] }>(url, developerKey);
    return holds.map(({ status }) => status);
  }
}
