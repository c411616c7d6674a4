/** Approvals of a FakeFarebox: what a refused call asks the owner, and what the answer changes. */
import { microsOf, newId, now } from './fake-values.js';
import { refuse } from './fake-refusal.js';

const ASK_SECONDS = 86_400;
const DENIED_MS = 3_600_000;
const ONCE_MS = 86_400_000;

export class FakeApprovals {
  /** By id, in the order in which they were asked. */
  all = new Map();

  /** `refusal` is what refuses the call now: of a budget, or of the balance. */
  ask(payer, call, refusal) {
    const same = [...this.all.values()].findLast((each) => isSame(each, payer, call, refusal));
    if (same) return { approval: same, status: 200 };
    const { code, node, scope = null, limit = null } = refusal;
    const approval = { id: newId('apr'), payer, code, node, scope, limit, ...call };
    Object.assign(approval, { status: 'pending', decision: null, raisedTo: null, isUsed: false });
    Object.assign(approval, { createdAt: now(), decidedAt: null });
    approval.expiresAt = new Date(
      Date.now() + (call.expiresIn ?? ASK_SECONDS) * 1_000,
    ).toISOString();
    this.all.set(approval.id, approval);
    return { approval, status: 201 };
  }

  /** The caller says whether anything refuses the call still, and whether the key that asked can never pay again. */
  settle(approval, isRefused, hasKeyEnded) {
    if (approval.status !== 'pending') return;
    const isOver = Date.parse(approval.expiresAt) <= Date.now();
    if (isOver || hasKeyEnded) end(approval, 'expired', null);
    else if (!isRefused) {
      end(approval, 'approved', approval.node ? 'resolved' : 'top_up');
    }
  }

  /** From a key that has ended to its successor: those that are pending or allow one call. */
  passOn(from, to) {
    for (const each of this.all.values()) {
      const isOpen = each.status === 'pending' || (each.decision === 'once' && !each.isUsed);
      if (isOpen && each.payer.key === from) each.payer = { ...each.payer, key: to };
    }
  }

  decide(approval, { decision, limit }, change) {
    if (isDecided(approval, { decision, limit })) return;
    if (decision !== 'deny') this.#carryOut(approval, decision, limit, change);
    end(approval, decision === 'deny' ? 'denied' : 'approved', decision);
  }

  #carryOut(approval, decision, limit, change) {
    const { node, scope, micros, developerId } = approval;
    if (decision === 'once') return;
    if (scope === null) {
      change(node, { approvedDevelopers: [...new Set([...node.approvedDevelopers, developerId])] });
      return;
    }
    const [name, present, used] = {
      total: ['limit', node.limit, node.used],
      window: ['window', node.window?.limit, node.windowUsed],
      per_call: ['maxPerCall', node.maxPerCall, 0],
    }[scope];
    const raised = decision === 'raise' ? microsOf('limit', limit) : used + micros;
    if (raised <= present) {
      refuse('invalid_amount', 'limit must be more than the current limit.', 'limit');
    }
    const dollars = raised / 1_000_000;
    change(node, { [name]: scope === 'window' ? { ...node.window, limit: dollars } : dollars });
    approval.raisedTo = raised;
  }

  /** A one-time approval that lets the call pass this refusal: the smallest. */
  onceFor(key, { tool, micros }, { node, code, scope = null }) {
    const fitting = [...this.all.values()].filter(
      (each) =>
        each.decision === 'once' &&
        !each.isUsed &&
        each.payer.key === key &&
        each.tool === tool &&
        each.node === node &&
        each.code === code &&
        each.scope === scope &&
        each.micros >= micros &&
        Date.parse(each.decidedAt) > Date.now() - ONCE_MS,
    );
    return fitting.toSorted((a, b) => a.micros - b.micros)[0];
  }
}

function isSame(each, payer, { tool, micros }, { code, node, scope = null }) {
  return (
    each.payer.consumer === payer.consumer &&
    each.payer.key === payer.key &&
    each.tool === tool &&
    each.micros === micros &&
    each.code === code &&
    each.node === node &&
    each.scope === scope &&
    (each.status === 'pending' ||
      (each.decision === 'once' && !each.isUsed) ||
      (each.status === 'denied' && Date.parse(each.decidedAt) > Date.now() - DENIED_MS))
  );
}

function end(approval, status, decision) {
  Object.assign(approval, { status, decision, decidedAt: now() });
}

/** Whether it has this answer already. Refuses another one, and any after it has expired. */
export function isDecided({ status, decision, raisedTo }, answer) {
  if (status === 'pending') return false;
  const isSame = decision === answer.decision;
  if (isSame && (decision !== 'raise' || raisedTo === microsOf('limit', answer.limit))) return true;
  return refuse('approval_closed', `The approval is ${status}.`, undefined, { status });
}

/** `readsName`: whether the reader may read what the budget is called; `readsKey`: which key was to pay. */
export function wireApproval(approval, readsName, readsKey) {
  const { id, status, code, node, scope, limit, raisedTo, developerId, tool, micros } = approval;
  const key = readsKey ? approval.payer.key : undefined;
  return {
    id,
    status,
    code,
    budgetId: node?.id ?? null,
    budgetName: node && readsName ? node.name : null,
    scope,
    limit: limit === null ? null : limit / 1_000_000,
    keyId: key?.id ?? null,
    keyName: key?.name ?? null,
    developerId,
    tool,
    amount: micros / 1_000_000,
    reason: approval.reason ?? null,
    askedBy: approval.askedBy,
    decision: approval.decision,
    raisedTo: raisedTo === null ? null : raisedTo / 1_000_000,
    used: approval.isUsed,
    approvalUrl: `https://fake.farebox.example/console/approvals?approval=${id}`,
    createdAt: approval.createdAt,
    expiresAt: approval.expiresAt,
    decidedAt: approval.decidedAt,
  };
}
