/** The table of routes: what the service can be asked, and who may ask it. */
import { AgentBody, IntentBody, ResolveBody } from '../schemas/agents.ts';
import { ChargeBatchBody, ChargeBody, RefundBody } from '../schemas/charges.ts';
import { TopUpBody } from '../schemas/consumers.ts';
import { ToolBody, ToolChanges } from '../schemas/developers.ts';
import { GrantBody } from '../schemas/grants.ts';
import { CaptureBody, ExtendBody, HoldBody } from '../schemas/holds.ts';
import { InvocationBody } from '../schemas/invocations.ts';
import { VerifyBody } from '../schemas/receipts.ts';
import { postAgent, postIntentPreview, postResolve } from './handlers/agents/agents.ts';
import { BATCH_BYTES_MAX, postChargeBatch } from './handlers/charges/charge-batches.ts';
import { postChargeRefund } from './handlers/charges/charge-refunds.ts';
import { getCharge, listCharges, postCharge } from './handlers/charges/charges.ts';
import { getBalance, getUsage } from './handlers/balance/balance-and-usage.ts';
import { getDeveloperTopUps } from './handlers/top-ups/developer-top-ups.ts';
import { getEarnings } from './handlers/earnings/earnings.ts';
import { act, csv, get, patch, post, type Endpoint } from './endpoint.ts';
import { exportCharges, exportEarnings, exportUsage } from './handlers/charges/charge-files.ts';
import { getGrant, postGrant, postGrantRevocation } from './handlers/agents/grants.ts';
import { getInvocationReceipt } from './handlers/agents/invocation-receipts.ts';
import {
  getInvocation,
  INVOCATION_BYTES_MAX,
  postInvocation,
} from './handlers/agents/invocations.ts';
import { getHold, getHolds } from './handlers/holds/hold-lists.ts';
import { postCapture, postExtension, postHold, postRelease } from './handlers/holds/holds.ts';
import { getReceiptKeys, verifyReceipt } from './handlers/charges/receipts.ts';
import { exportStatement, getStatement } from './handlers/earnings/statements.ts';
import { getTools, patchTool, postTool } from './handlers/earnings/tools.ts';
import { getTopUp, listTopUps, postCheckout, postTopUp } from './handlers/top-ups/top-ups.ts';

export const ENDPOINTS: readonly Endpoint[] = [
  // Charging (specification section 4.3)
  post('/v1/charges', { role: 'developer', body: ChargeBody, isSafe: true, handle: postCharge }),
  post('/v1/charges/batch', {
    role: 'developer',
    body: ChargeBatchBody,
    bodyBytesMax: BATCH_BYTES_MAX,
    isSafe: true,
    handle: postChargeBatch,
  }),
  get('/v1/charges', { role: 'developer', handle: listCharges }),
  csv('/v1/charges.csv', { role: 'developer', handle: exportCharges }),
  get('/v1/charges/:id', { role: 'developer', handle: getCharge }),
  post('/v1/charges/:id/refund', { role: 'developer', body: RefundBody, handle: postChargeRefund }),
  post('/v1/holds', { role: 'developer', body: HoldBody, handle: postHold }),
  get('/v1/holds', { role: 'either', handle: getHolds }),
  get('/v1/holds/:id', { role: 'either', handle: getHold }),
  post('/v1/holds/:id/capture', { role: 'developer', body: CaptureBody, handle: postCapture }),
  post('/v1/holds/:id/extend', { role: 'developer', body: ExtendBody, handle: postExtension }),
  act('/v1/holds/:id/release', { role: 'developer', handle: postRelease }),
  post('/v1/receipts/verify', {
    role: 'either',
    body: VerifyBody,
    isSafe: true,
    handle: verifyReceipt,
  }),
  get('/v1/receipts/keys', { role: 'developer', handle: getReceiptKeys }),
  // Consumers (section 4.1)
  get('/v1/balance', { role: 'consumer', handle: getBalance }),
  get('/v1/usage', { role: 'consumer', handle: getUsage }),
  csv('/v1/usage.csv', { role: 'consumer', handle: exportUsage }),
  post('/v1/top-up', { role: 'consumer', body: TopUpBody, handle: postTopUp }),
  get('/v1/top-up', { role: 'consumer', handle: listTopUps }),
  get('/v1/top-up/:id', { role: 'consumer', handle: getTopUp }),
  post('/v1/checkout', { role: 'consumer', body: TopUpBody, handle: postCheckout }),
  // Developers (section 4.2)
  get('/v1/earnings', { role: 'developer', handle: getEarnings }),
  csv('/v1/earnings.csv', { role: 'developer', handle: exportEarnings }),
  post('/v1/tools', { role: 'developer', body: ToolBody, handle: postTool }),
  get('/v1/tools', { role: 'developer', handle: getTools }),
  patch('/v1/tools/:id', { role: 'developer', body: ToolChanges, handle: patchTool }),
  get('/v1/top-ups', { role: 'developer', handle: getDeveloperTopUps }),
  // Either role
  csv('/v1/statements/:month.csv', { role: 'either', handle: exportStatement }),
  get('/v1/statements/:month', { role: 'either', handle: getStatement }),
  // Agents, legacy (section 4.4)
  post('/register', { role: 'legacy', body: AgentBody, handle: postAgent }),
  post('/resolve', { role: 'legacy', body: ResolveBody, isSafe: true, handle: postResolve }),
  post('/intent/preview', {
    role: 'legacy',
    body: IntentBody,
    isSafe: true,
    handle: postIntentPreview,
  }),
  post('/grant', { role: 'legacy', body: GrantBody, handle: postGrant }),
  get('/grant/:id', { role: 'legacy', handle: getGrant }),
  act('/grant/:id/revoke', { role: 'legacy', handle: postGrantRevocation }),
  post('/invoke', {
    role: 'legacy',
    body: InvocationBody,
    bodyBytesMax: INVOCATION_BYTES_MAX,
    handle: postInvocation,
  }),
  get('/invoke/:id', { role: 'legacy', handle: getInvocation }),
  get('/receipts/:id', { role: 'legacy', handle: getInvocationReceipt }),
];
