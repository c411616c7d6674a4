/** What a FakeFarebox answers: the routes of the service that charging needs. Each gives `{ status, body }`. */
import { BUDGET_ROUTES } from './fake-budget-routes.js';
import {
  checkBounds,
  checkCharge,
  checkHold,
  checkMembers,
  checkMetadata,
  checkSeconds,
  checkTool,
  rangeOf,
  topUpOf,
} from './fake-checks.js';
import {
  cardOf,
  checkCard,
  checkUnits,
  costOf,
  pricesOf,
  setCard,
  wireCard,
} from './fake-cards.js';
import { entriesOf, microsOf, newId, newTool, now } from './fake-values.js';
import { answerOnDemand } from './fake-magic.js';
import { FAKE_RECEIPT_KEYS, signReceipt } from './fake-receipts.js';
import { FakeRefusal, refuse } from './fake-refusal.js';
import { done, listOf } from './fake-replies.js';
import { checkMember, checkShape } from './fake-shapes.js';

/** By method and path, where `:id` stands for an id and `:version` for a version; then whose key it takes, as in the service. */
const ROUTES = [
  ['POST /v1/charges', 'developer', postCharge],
  ['POST /v1/charges/batch', 'developer', postBatch],
  ['GET /v1/charges', 'developer', getCharges],
  ['GET /v1/charges/:id', 'developer', getCharge],
  ['POST /v1/charges/:id/refund', 'developer', postRefund],
  ['POST /v1/holds', 'developer', postHold],
  ['GET /v1/holds', 'either', getHolds],
  ['GET /v1/holds/:id', 'either', getHold],
  ['POST /v1/holds/:id/capture', 'developer', postCapture],
  ['POST /v1/holds/:id/release', 'developer', postRelease],
  ['POST /v1/holds/:id/extend', 'developer', postExtend],
  ['POST /v1/tools', 'developer', postTool],
  ['GET /v1/tools', 'developer', getTools],
  ['GET /v1/tools/:id', 'developer', getTool],
  ['GET /v1/tools/:id/cards/:version', 'developer', getCard],
  ['PATCH /v1/tools/:id', 'developer', patchTool],
  ['POST /v1/quote', 'developer', postQuote],
  ['GET /v1/earnings', 'developer', getEarnings],
  ['GET /v1/receipts/keys', 'developer', () => done({ keys: FAKE_RECEIPT_KEYS })],
  ['GET /v1/balance', 'consumer', getBalance],
  ['GET /v1/usage', 'consumer', getUsage],
  ['POST /v1/top-up', 'consumer', postTopUp],
  ...BUDGET_ROUTES,
].map(([route, role, handle]) => {
  const pattern = new RegExp(`^${route.replaceAll(/:\w+/g, '([^/]+)')}$`);
  return { route, pattern, role, handle };
});

/** `request` is `{ method, url, headers, body, signal, requestId }`, nearly as fetch is called. */
export async function answerOf(ledger, secretKey, request) {
  const { method, url, headers, body, signal, requestId } = request;
  const { pathname, searchParams: query } = new URL(url);
  const name = `${method} ${pathname}`;
  for (const { route, pattern, role, handle } of ROUTES) {
    const match = pattern.exec(name);
    if (!match) continue;
    const key = headers.get('authorization')?.replace(/^Bearer /, '');
    if (role === 'developer' && key !== secretKey) {
      refuse('invalid_secret_key', 'Send a secret key.');
    }
    const isConsumer = role === 'consumer' || (role === 'either' && key !== secretKey);
    const consumer = isConsumer ? consumerBy(ledger, key) : undefined;
    const isPayer = role === 'payer' || (role === 'asker' && key !== secretKey);
    const payer = isPayer ? payerBy(ledger, key) : undefined;
    checkShape(route, body, query);
    const idempotencyKey = headers.get('idempotency-key') ?? undefined;
    const [, id, version] = match;
    const asked = { id, version, query, body, consumer, payer, idempotencyKey };
    return handle(ledger, { ...asked, signal, requestId });
  }
  return refuse('not_found', `FakeFarebox does not have ${name}.`);
}

function consumerBy({ consumers }, key) {
  return consumers.get(key) ?? refuse('invalid_api_key', 'Send a consumer key.');
}

function payerBy(ledger, key) {
  return ledger.findPayer(key) ?? refuse('invalid_api_key', 'Send a consumer key or a spend key.');
}

async function postCharge(ledger, { body, idempotencyKey, signal }) {
  checkCharge(body);
  const { charge, balance, replayed } = ledger.charge(body, idempotencyKey);
  if (body.units === undefined) await answerOnDemand(charge.micros, replayed, signal);
  return done({ ...(await wireCharge(ledger, charge)), balance: dollars(balance) }, made(replayed));
}

async function postBatch(ledger, { body, signal, requestId }) {
  checkMembers(body.charges);
  const results = body.charges.map(async (asked) => {
    try {
      checkMember(asked);
      const { op = 'charge', ...member } = asked;
      return await BATCH_OPS[op](ledger, member, signal);
    } catch (error) {
      if (!(error instanceof FakeRefusal)) throw error;
      return { status: error.status, error: { ...error.error, requestId } };
    }
  });
  const made = await Promise.all(results);
  return done({ results: made.map((result) => atTheEnd(ledger, result)) });
}

/** A hold is shown in its state at the end of the batch. */
function atTheEnd(ledger, result) {
  if (!result.hold) return result;
  return {
    ...result,
    hold: { ...result.hold, ...wireHold(ledger, ledger.holdOf(result.hold.id)) },
  };
}

const BATCH_OPS = {
  charge: async (ledger, { idempotencyKey, ...body }, signal) =>
    charged(await postCharge(ledger, { body, idempotencyKey, signal })),
  hold: async (ledger, { idempotencyKey, ...body }, signal) =>
    withHold(await postHold(ledger, { body, idempotencyKey, signal })),
  capture: async (ledger, { idempotencyKey, holdId: id, ...body }) =>
    charged(await postCapture(ledger, { id, body, idempotencyKey })),
  release: (ledger, { holdId: id }) => withHold(postRelease(ledger, { id })),
};

function charged({ status, replayed, body }) {
  return { status, ...(replayed && { replayed }), ...body };
}

function withHold({ status, replayed, body }) {
  return { status, ...(replayed && { replayed }), hold: body };
}

async function postRefund(ledger, { id: chargeId, body, idempotencyKey }) {
  const { id, micros, refunded, createdAt, replayed } = ledger.refund(
    chargeId,
    body,
    idempotencyKey,
  );
  const refund = { id, chargeId, amount: dollars(micros), refunded: dollars(refunded), createdAt };
  return done(refund, made(replayed));
}

async function getCharges(ledger, { query }) {
  const consumerId = query.get('consumerId');
  const charges = matching(ledger, query).filter(
    ({ consumer }) => consumerId === null || consumer.id === consumerId,
  );
  return listOf('charges', charges, query, (charge) => developerCharge(ledger, charge));
}

async function getCharge(ledger, { id }) {
  const charge = ledger.charges.get(id) ?? refuse('not_found', 'There is no such charge.');
  return done(await developerCharge(ledger, charge));
}

async function getUsage(ledger, { query, consumer }) {
  const isOwn = (charge) => charge.consumer === consumer;
  const charges = matching(ledger, query).filter(isOwn);
  const isInRange = rangeOf(query);
  const total = ofTool(ledger, query)
    .filter(isOwn)
    .flatMap(entriesOf)
    .filter(({ createdAt }) => isInRange(createdAt))
    .reduce((sum, { micros }) => sum + micros, 0);
  const { body } = await listOf('charges', charges, query, (charge) => listed(ledger, charge));
  return done({ ...body, total: dollars(total) });
}

async function postHold(ledger, { body, idempotencyKey, signal }) {
  checkHold(body);
  const { hold, balance, replayed } = ledger.place(body, idempotencyKey);
  if (body.units === undefined) await answerOnDemand(hold.micros, replayed, signal);
  return done({ ...wireHold(ledger, hold), balance: dollars(balance) }, made(replayed));
}

async function postCapture(ledger, { id: holdId, body, idempotencyKey }) {
  checkUnits(body.units);
  checkMetadata(body.metadata);
  const { charge, balance, hold, replayed } = ledger.capture(holdId, body, idempotencyKey);
  const amounts = { balance: dollars(balance), holdId, hold: wireHold(ledger, hold) };
  return done({ ...(await wireCharge(ledger, charge)), ...amounts }, made(replayed));
}

function postRelease(ledger, { id }) {
  return done(wireHold(ledger, ledger.release(id).hold));
}

function postExtend(ledger, { id, body, idempotencyKey }) {
  checkSeconds(body.expiresIn);
  const { hold, replayed } = ledger.extend(id, body, idempotencyKey);
  return done(wireHold(ledger, hold), { replayed });
}

function getHold(ledger, { id, consumer }) {
  const hold = ledger.holdOf(id);
  if (consumer && hold.consumer !== consumer) refuse('hold_not_found', 'There is no such hold.');
  return done(shownHold(ledger, hold, consumer));
}

function getHolds(ledger, { query, consumer }) {
  const status = query.get('status');
  const holds = [...ledger.holds.values()]
    .toReversed()
    .filter(
      (hold) =>
        (!consumer || hold.consumer === consumer) &&
        (status === null || ledger.stateOf(hold) === status),
    );
  return listOf('holds', holds, query, (hold) => shownHold(ledger, hold, consumer));
}

/** Only the developer sees its metadata. */
function shownHold(ledger, hold, consumer) {
  const view = wireHold(ledger, hold);
  return consumer ? view : { ...view, metadata: hold.metadata };
}

function postTool(ledger, { body: { name, description = '', price = null, card } }) {
  checkTool('name', name);
  checkCard(card);
  const micros = price === null ? null : microsOf('price', price);
  const prices = pricesOf(card);
  const known = ledger.tools.get(name);
  if (known?.isRegistered) {
    const message = 'A tool with this name already exists, perhaps archived.';
    refuse('tool_exists', message, undefined, { toolId: known.id });
  }
  const tool = known ?? newTool(name);
  Object.assign(tool, { description, micros, isRegistered: true });
  setCard(tool, prices);
  ledger.tools.set(name, tool);
  const { archived: _, ...view } = wireTool(tool);
  return done(view, { status: 201 });
}

function getTools(ledger, { query }) {
  const isArchived = query.get('archived') === 'true';
  const name = query.get('name');
  const tools = [...ledger.tools.values()].filter(
    (tool) => tool.archived === isArchived && (name === null || tool.name === name),
  );
  return listOf('tools', tools, query, (tool) => withRevenue(ledger, tool));
}

function getTool(ledger, { id }) {
  return done(wireTool(toolOf(ledger, id)));
}

function getCard(ledger, { id, version }) {
  return done(cardOf(toolOf(ledger, id), version));
}

function patchTool(ledger, { id, body: { description, price, card, archived } }) {
  checkCard(card);
  const micros = (price ?? null) === null ? null : microsOf('price', price);
  const prices = pricesOf(card);
  const tool = toolOf(ledger, id);
  tool.isRegistered = true;
  if (description !== undefined) tool.description = description;
  if (price !== undefined) tool.micros = micros;
  if (card !== undefined) setCard(tool, prices);
  if (archived !== undefined) tool.archived = archived;
  return done(wireTool(tool));
}

function postQuote(ledger, { body: { tool, units } }) {
  checkTool('tool', tool);
  checkUnits(units);
  const known = ledger.tools.get(tool);
  if (!known) refuse('unknown_tool', 'The tool is not registered.', 'tool');
  if (known.archived) refuse('tool_archived', 'The tool is archived.', 'tool');
  if (units === undefined) {
    if (known.micros === null) {
      const message = 'The tool has no price. Send units if it has a rate card.';
      refuse('invalid_request', message, 'units');
    }
    return done({ tool, amount: dollars(known.micros), cardVersion: null });
  }
  const { micros, card } = costOf(known, units);
  return done({ tool, amount: dollars(micros), cardVersion: card.version });
}

function getEarnings(ledger, { query }) {
  if (query.has('interval')) refuse('not_found', 'FakeFarebox has no series of earnings.');
  checkBounds(query, 'hour');
  const isInRange = rangeOf(query);
  const today = now().slice(0, 10);
  const byTool = new Map();
  let todayEarnings = 0;
  for (const charge of ledger.charges.values()) {
    const { tool } = charge;
    if (tool !== (query.get('tool') ?? tool)) continue;
    for (const entry of entriesOf(charge)) {
      if (entry.createdAt.startsWith(today)) todayEarnings += entry.micros;
      if (isInRange(entry.createdAt)) byTool.set(tool, (byTool.get(tool) ?? 0) + entry.micros);
    }
  }
  const total = [...byTool.values()].reduce((sum, micros) => sum + micros, 0);
  const { developerId } = ledger;
  const earnings = Object.fromEntries([...byTool].map(([tool, micros]) => [tool, dollars(micros)]));
  const sums = { totalEarnings: dollars(total), todayEarnings: dollars(todayEarnings) };
  return done({ developerId, ...sums, byTool: earnings });
}

function getBalance(ledger, { consumer }) {
  ledger.expireHolds();
  const autoTopUp = { status: 'off', reason: null };
  const { id: consumerId, micros } = consumer;
  const held = dollars(ledger.heldOf(consumer));
  return done({ balance: dollars(micros), debt: 0, held, consumerId, autoTopUp });
}

function postTopUp(ledger, { body, consumer, idempotencyKey }) {
  const micros = topUpOf(body.amount);
  const answer = ledger.once(['top-up', consumer.id], idempotencyKey, { micros }, () => {
    consumer.micros += micros;
    return { topUpId: newId('tu') };
  });
  const { topUpId, replayed } = answer;
  const view = { topUpId, amount: dollars(micros), balance: dollars(consumer.micros) };
  return done({ ...view, status: 'completed' }, made(replayed));
}

function made(replayed) {
  return { status: 201, replayed };
}

/** The newest first. */
function matching(ledger, query) {
  const isInRange = rangeOf(query);
  return ofTool(ledger, query)
    .toReversed()
    .filter(({ createdAt }) => isInRange(createdAt));
}

/** The charges of the query's tool, or of all tools, at any time. */
function ofTool(ledger, query) {
  const tool = query.get('tool');
  return [...ledger.charges.values()].filter((charge) => tool === null || charge.tool === tool);
}

async function listed(ledger, charge) {
  const { balance: _, consumerId: __, ...view } = await wireCharge(ledger, charge);
  const { holdId, refunded } = charge;
  return { ...view, refunded: dollars(refunded), ...(holdId && { holdId }) };
}

async function developerCharge(ledger, charge) {
  const { consumer, metadata } = charge;
  return { ...(await listed(ledger, charge)), consumerId: consumer.id, metadata };
}

async function wireCharge({ developerId }, charge) {
  const { id, tool, micros, cardVersion, consumer, createdAt } = charge;
  const receipt = await signReceipt(charge, developerId);
  const made = { id, receipt, tool, amount: dollars(micros), developerId, createdAt };
  return { ...made, ...(cardVersion && { cardVersion }), consumerId: consumer.id };
}

function wireHold(ledger, hold) {
  const status = ledger.stateOf(hold);
  const { id, tool, micros, captured, remaining, expiresMs, createdAt, consumer } = hold;
  return {
    id,
    tool,
    amount: dollars(micros),
    captured: dollars(captured),
    remaining: dollars(remaining),
    status,
    expiresAt: new Date(expiresMs).toISOString(),
    createdAt,
    consumerId: consumer.id,
    developerId: ledger.developerId,
  };
}

function toolOf(ledger, id) {
  const tools = [...ledger.tools.values()];
  return tools.find((tool) => tool.id === id) ?? refuse('not_found', 'There is no such tool.');
}

function wireTool(tool) {
  const { createdAt, archived } = tool;
  return { ...pricedTool(tool), createdAt, archived };
}

function pricedTool(tool) {
  const { id, name, description, micros } = tool;
  return { id, name, description, price: priceOf(micros), ...wireCard(tool) };
}

function withRevenue(ledger, tool) {
  const charges = [...ledger.charges.values()].filter((charge) => charge.tool === tool.name);
  const revenue = charges.reduce((sum, charge) => sum + charge.micros - charge.refunded, 0);
  const sums = { totalCharges: charges.length, totalRevenue: dollars(revenue) };
  return { ...pricedTool(tool), ...sums };
}

function priceOf(micros) {
  return micros === null ? null : dollars(micros);
}

function dollars(micros) {
  return micros / 1_000_000;
}
