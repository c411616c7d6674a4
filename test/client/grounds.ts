/** The service and its fake, as the suites use both: a developer, and a consumer with play money. */
import assert from 'node:assert/strict';
import { Farebox, FareboxConsumer } from '@farebox/client';
import { FakeFarebox } from '@farebox/client/testing';
import { startTestApi, type TestApi } from '../support/api.ts';
import { testSideOf } from '../support/test-mode.ts';

export interface Ground {
  readonly farebox: Farebox;
  readonly consumer: FareboxConsumer;
  readonly apiKey: string;
  readonly consumerId: string;
  /** A client of the consumer by another key, such as a spend key. */
  readonly consumerBy: (key: string) => FareboxConsumer;
}

export interface Service {
  start(): Promise<void>;
  /** A new developer, and a new consumer with $10.00 of play money. */
  open(): Promise<Ground>;
  stop(): Promise<void>;
}

export function realService(): Service {
  let api: TestApi | undefined;
  return {
    start: async () => {
      api = await startTestApi();
    },
    open: async () => {
      assert(api);
      const { url: baseUrl } = api;
      const live = await api.createAccount(0);
      const test = await testSideOf(api, api.databaseUrl, live, 10);
      const { developerKey: secretKey, consumerKey, consumerId } = test;
      return {
        farebox: new Farebox({ secretKey, baseUrl, maxRetries: 0 }),
        consumer: new FareboxConsumer({ consumerKey, baseUrl, maxRetries: 0 }),
        consumerBy: (key) => new FareboxConsumer({ consumerKey: key, baseUrl, maxRetries: 0 }),
        apiKey: consumerKey,
        consumerId,
      };
    },
    stop: async () => api?.stop(),
  };
}

export function fakeService(): Service {
  return {
    start: async () => {},
    open: async () => {
      const fake = new FakeFarebox();
      const { apiKey, consumerId } = fake.addConsumer({ balance: 10 });
      return {
        farebox: fake.farebox(),
        consumer: fake.consumer(apiKey),
        consumerBy: (key) => fake.consumer(key),
        apiKey,
        consumerId,
      };
    },
    stop: async () => {},
  };
}
