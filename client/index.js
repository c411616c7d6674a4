/** @farebox/client: charge a consumer for a tool call, get a signed receipt, run the tool. */
export { FareboxConsumer } from './consumer.js';
export {
  FareboxError,
  InsufficientBalanceError,
  InvalidApiKeyError,
  ServiceUnavailableError,
} from './errors.js';
export { Farebox } from './farebox.js';
export { usd } from './money.js';
export { verifyPublicReceipt } from './receipts.js';
export { serviceKeyOf } from './service-key.js';
