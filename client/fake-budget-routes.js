/** What a FakeFarebox answers about budgets, spend keys and approvals. */
import { isDecided, wireApproval } from './fake-approvals.js';
import { hasEnded, refusesStill, wireNode } from './fake-budgets.js';
import {
  checkBudget,
  checkKey,
  checkOverlap,
  checkParties,
  checkQuestion,
  checkTool,
  checkUsage,
  rangeOf,
  topUpOf,
} from './fake-checks.js';
import { entriesOf, microsOf, now } from './fake-values.js';
import { malformed, refuse } from './fake-refusal.js';
import { done, listOf } from './fake-replies.js';

const POLL_MS = 10;
/** Which answers fit which refusal. `deny` fits each. */
const ANSWERS = {
  spend_limit_reached: ['once', 'always', 'raise'],
  approval_required: ['once', 'always'],
  insufficient_balance: ['top_up'],
};

export const BUDGET_ROUTES = [
  ['POST /v1/budgets', 'payer', postBudget],
  ['GET /v1/budgets', 'payer', getBudgets],
  ['GET /v1/budgets/:id', 'payer', getBudget],
  ['PATCH /v1/budgets/:id', 'payer', patchBudget],
  ['POST /v1/budgets/:id/close', 'payer', postClosing],
  ['GET /v1/budgets/:id/usage', 'payer', getUsage],
  ['POST /v1/budgets/:id/keys', 'payer', postKey],
  ['GET /v1/budgets/:id/keys', 'payer', getKeys],
  ['POST /v1/keys/:id/roll', 'payer', postRoll],
  ['POST /v1/keys/:id/revoke', 'payer', postRevoke],
  ['POST /v1/approvals', 'asker', postApproval],
  ['GET /v1/approvals', 'payer', getApprovals],
  ['GET /v1/approvals/:id', 'asker', getApproval],
  ['POST /v1/approvals/:id/decide', 'payer', postDecision],
];

function postBudget(ledger, { body, payer, idempotencyKey }) {
  checkTool('name', body.name);
  checkBudget(body);
  const { budgets } = ledger;
  const own = payer.key?.node;
  if (own && !own.mayDelegate) refuseDelegation();
  const parent = body.parentId ? seen(ledger, payer, body.parentId, 'parentId') : own;
  const scope = ['budget', payer.consumer.id, own?.id];
  const make = () => budgets.create(payer.consumer, parent, body);
  const { node, replayed } = ledger.once(scope, idempotencyKey, body, make);
  return done(wireNode(node, own), { status: 201, replayed });
}

function getBudgets(ledger, { query, payer }) {
  const parentId = query.get('parentId');
  const nodes = [...ledger.budgets.nodes.values()]
    .toReversed()
    .filter((node) => isSeen(payer, node) && (parentId === null || node.parent?.id === parentId));
  return listOf('budgets', nodes, query, (node) => wireNode(node, payer.key?.node));
}

function getBudget(ledger, { id, payer }) {
  return shown(payer, seen(ledger, payer, id));
}

function patchBudget(ledger, { id, body, payer }) {
  checkBudget(body);
  const node = changeable(ledger, payer, id);
  ledger.budgets.change(node, body);
  return shown(payer, node);
}

function postClosing(ledger, { id, body, payer }) {
  const node = changeable(ledger, payer, id);
  ledger.budgets.close(node);
  if (body.releaseHolds) ledger.releaseHoldsOf((key) => key.node.path.includes(node));
  return shown(payer, node);
}

function shown(payer, node) {
  return done(wireNode(node, payer.key?.node));
}

function getUsage(ledger, { id, query, payer }) {
  checkUsage(query);
  const node = seen(ledger, payer, id);
  const by = query.get('by') ?? 'tool';
  const isInRange = rangeOf(query);
  const groups = new Map();
  const own = [...ledger.charges.values()].filter(({ key }) => key?.node.path.includes(node));
  const entries = own.flatMap(({ key, tool, ...charge }) =>
    entriesOf(charge).map((entry) => ({ ...entry, key, tool })),
  );
  for (const { key, tool, micros, charges, createdAt } of entries) {
    if (!isInRange(createdAt)) continue;
    const from = `${createdAt.slice(0, 10)}T00:00:00.000Z`;
    const name = {
      tool: { tool },
      key: { keyId: key.id, keyName: key.name },
      developer: { developerId: ledger.developerId },
      day: { from },
    }[by];
    const mark = JSON.stringify(name);
    const group = groups.get(mark) ?? { ...name, spent: 0, charges: 0 };
    groups.set(mark, group);
    group.spent += micros;
    group.charges += charges;
  }
  const made = [...ledger.budgets.keys.values()].map((key) => key.id);
  const inOrder = {
    key: (a, b) => made.indexOf(b.keyId) - made.indexOf(a.keyId),
    tool: (a, b) => (a.tool < b.tool ? -1 : 1),
    developer: () => 0,
    day: (a, b) => (a.from < b.from ? 1 : -1),
  }[by];
  const sums = [...groups.values()].toSorted(inOrder);
  const spent = sums.reduce((sum, group) => sum + group.spent, 0) / 1_000_000;
  const charges = sums.reduce((sum, group) => sum + group.charges, 0);
  const extra = { budgetId: node.id, total: { spent, charges } };
  return listOf('usage', sums, query, (sum) => ({ ...sum, spent: sum.spent / 1_000_000 }), extra);
}

function postKey(ledger, { id, body, payer, idempotencyKey }) {
  checkKey(body);
  const node = changeable(ledger, payer, id);
  const make = () => ledger.budgets.createKey(node, body);
  const { key, replayed } = ledger.once(['key', node.id], idempotencyKey, body, make);
  return done(newKeyOf(key), { status: 201, replayed });
}

function newKeyOf({ id, node, name, apiKey }) {
  return { id, kind: 'consumer', mode: 'test', budgetId: node.id, name, key: apiKey };
}

function getKeys(ledger, { id, query, payer }) {
  const node = changeable(ledger, payer, id);
  const keys = [...ledger.budgets.keys.values()].filter((key) => key.node === node);
  return listOf('keys', keys.toReversed(), query, wireKey);
}

function wireKey({ id, node, name, apiKey, createdAt, expiresAt, revokedAt }) {
  const lastFour = apiKey.slice(-4);
  const times = { createdAt, expiresAt, revokedAt, lastUsedAt: null };
  return { id, kind: 'consumer', mode: 'test', budgetId: node.id, name, lastFour, ...times };
}

function postRoll(ledger, { id, body: { overlapSeconds = 0 }, payer, idempotencyKey }) {
  checkOverlap(overlapSeconds);
  const roll = () => {
    const old = keyBelow(ledger, payer, id);
    if (hasEnded(old)) refuseKey();
    const made = ledger.budgets.createKey(old.node, old);
    if (overlapSeconds === 0) {
      old.revokedAt = now();
      ledger.approvals.passOn(old, made.key);
    } else old.expiresAt = new Date(Date.now() + overlapSeconds * 1_000).toISOString();
    return made;
  };
  const scope = ['roll', payer.consumer.id, payer.key?.node.id, id];
  const { key, replayed } = ledger.once(scope, idempotencyKey, { overlapSeconds }, roll);
  return done(newKeyOf(key), { status: 201, replayed });
}

function postRevoke(ledger, { id, body, payer }) {
  const key = keyBelow(ledger, payer, id);
  key.revokedAt ??= now();
  if (body.releaseHolds) ledger.releaseHoldsOf((each) => each === key);
  return done(wireKey(key));
}

function keyBelow({ budgets }, payer, id) {
  const key = [...budgets.keys.values()].find((each) => each.id === id);
  return key && isSeen(payer, key.node) && key.node !== payer.key?.node ? key : refuseKey();
}

function refuseKey() {
  return refuse('not_found', 'There is no such key, or it is no longer active.');
}

/** A spend key sees its own node, and those below when that node may delegate. */
function isSeen({ consumer, key }, node) {
  if (node.consumer !== consumer) return false;
  return !key || node === key.node || (key.node.mayDelegate && node.path.includes(key.node));
}

function seen({ budgets }, payer, id, param) {
  const node = budgets.nodes.get(id);
  if (node && isSeen(payer, node)) return node;
  return refuse('not_found', 'There is no such budget.', param);
}

function changeable(ledger, payer, id) {
  const node = seen(ledger, payer, id);
  const own = payer.key?.node;
  if (own && (!own.mayDelegate || node === own)) refuseDelegation();
  return node;
}

function refuseDelegation() {
  const message = 'A spend key can create and change budgets only below its own.';
  refuse('delegation_not_allowed', message);
}

/** What the owner has already let the call pass comes last, because something else may refuse it. */
function refusalToAskAbout(ledger, payer, call) {
  const isPassed = (found) => ledger.approvals.onceFor(payer.key, call, found) !== undefined;
  const ofBudget = payer.key && ledger.budgets.refusalOf(payer.key, call, isPassed);
  return ofBudget ?? ledger.refusalOf(payer, call);
}

function postApproval(ledger, { body, payer: caller }) {
  checkQuestion(body);
  checkParties(body, caller !== undefined, ledger.developerId);
  const { apiKey, tool, amount, reason, expiresIn } = body;
  const payer = caller ?? ledger.payerOf(apiKey);
  if (amount === undefined && !ledger.tools.has(tool)) {
    refuse('invalid_amount', 'The tool has no price, so amount is required.', 'amount');
  }
  const micros = amount === undefined ? ledger.priceOf(tool) : microsOf('amount', amount);
  const refusal = refusalToAskAbout(ledger, payer, { tool, micros });
  if (!refusal)
    refuse(
      'approval_not_needed',
      'Nothing refuses this call, so it needs no approval. Charge again.',
    );
  if (!(refusal.code in ANSWERS)) {
    refuse(refusal.code, refusal.message, refusal.param, refusal.facts);
  }
  const { developerId } = ledger;
  const askedBy = caller ? 'payer' : 'developer';
  const call = { tool, micros, reason, expiresIn, developerId, askedBy };
  const { approval, status } = ledger.approvals.ask(payer, call, refusal);
  const reply = wireApproval(approval, readsName(caller, approval), caller !== undefined);
  return done(reply, { status });
}

/** Waits as the service does, and sees a top-up or a changed budget too. */
async function getApproval(ledger, { id, query, payer, signal }) {
  const deadline = Date.now() + Number(query.get('wait') ?? 0) * 1_000;
  const approval = seenApproval(ledger, payer, id);
  for (;;) {
    signal?.throwIfAborted();
    settle(ledger, approval);
    if (approval.status !== 'pending' || Date.now() >= deadline) break;
    await new Promise((resolve) => {
      setTimeout(resolve, POLL_MS);
    });
  }
  return done(wireApproval(approval, readsName(payer, approval), payer !== undefined));
}

function settle(ledger, approval) {
  const { payer, micros, node } = approval;
  ledger.expireHolds();
  const isRefused = node ? refusesStill(approval) : payer.consumer.micros < micros;
  const hasKeyEnded = payer.key !== undefined && ledger.budgets.hasKeyEnded(payer.key);
  ledger.approvals.settle(approval, isRefused, hasKeyEnded);
}

function getApprovals(ledger, { query, payer }) {
  const [status, budgetId] = [query.get('status'), query.get('budgetId')];
  const all = [...ledger.approvals.all.values()].toReversed();
  for (const approval of all) settle(ledger, approval);
  const approvals = all.filter(
    (each) =>
      isForPayer(payer, each) &&
      (status === null || each.status === status) &&
      (budgetId === null || each.node?.id === budgetId),
  );
  return listOf('approvals', approvals, query, (each) =>
    wireApproval(each, readsName(payer, each), true),
  );
}

function postDecision(ledger, { id, body, payer }) {
  const approval = seenApproval(ledger, payer, id);
  if (!mayDecide(payer, approval)) refuseDelegation();
  checkAnswer(approval, body);
  settle(ledger, approval);
  if (body.decision === 'top_up') topUpFor(ledger, approval, body);
  else {
    const change = (node, changes) => ledger.budgets.change(node, changes);
    ledger.approvals.decide(approval, body, change);
  }
  return done(wireApproval(approval, true, true));
}

function checkAnswer({ code }, { decision, limit, amount }) {
  if (decision !== 'deny' && !ANSWERS[code].includes(decision)) {
    refuse('invalid_request', `${decision} does not answer ${code}.`, 'decision');
  }
  if (decision === 'raise' && limit === undefined) malformed('limit', 'is required');
  if (decision !== 'raise' && limit !== undefined) malformed('limit', 'is for raise only');
  if (decision !== 'top_up' && amount !== undefined) malformed('amount', 'is for top_up only');
}

/** Once: the same answer again, after a lost reply, pays nothing. */
function topUpFor(ledger, approval, { decision, amount }) {
  if (isDecided(approval, { decision })) return;
  const { consumer } = approval.payer;
  const missing = Math.ceil((approval.micros - consumer.micros) / 10_000) * 10_000;
  consumer.micros += amount === undefined ? Math.max(missing, 500_000) : topUpOf(amount);
  settle(ledger, approval);
}

function seenApproval({ approvals }, payer, id) {
  const approval = approvals.all.get(id);
  const isSeenBy = payer ? isForPayer(payer, approval) : approval?.askedBy === 'developer';
  return approval && isSeenBy ? approval : refuse('not_found', 'There is no such approval.');
}

function isForPayer(payer, approval) {
  if (approval?.payer.consumer !== payer.consumer) return false;
  return (
    mayDecide(payer, approval) || (payer.key !== undefined && approval.payer.key === payer.key)
  );
}

/** The owner, or the holder of a key above the budget that refused. */
function mayDecide({ key }, { node }) {
  if (!key) return true;
  return key.node.mayDelegate && node !== key.node && (node?.path.includes(key.node) ?? false);
}

function readsName(payer, { node }) {
  if (!payer) return false;
  return !payer.key || (node?.path.includes(payer.key.node) ?? false);
}
