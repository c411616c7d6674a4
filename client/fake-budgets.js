/** Budgets and spend keys of a FakeFarebox, by the rules of the service: what counts where, and what refuses. */
import { formatDollars, microsOf, newId, newKey, now, wireTime } from './fake-values.js';
import { refuse } from './fake-refusal.js';

const DEPTH_MAX = 6;
const SETTINGS = {
  name: '',
  limit: null,
  window: null,
  maxPerCall: null,
  allowLeases: false,
  maxLease: null,
  tools: null,
  developers: null,
  approveDevelopers: false,
  approvedDevelopers: [],
  mayDelegate: false,
  expiresAt: null,
  metadata: null,
};
const SAYS = {
  total: (limit, left) => `The budget allows ${limit} in total; ${left} is left.`,
  window: (limit, left) => `The budget allows ${limit} in its current window; ${left} is left.`,
  per_call: (limit) => `The budget allows at most ${limit} for one call.`,
};

export class FakeBudgets {
  /** By id, in the order in which they were made. */
  nodes = new Map();
  /** By key. */
  keys = new Map();
  #developerId;

  constructor(developerId) {
    this.#developerId = developerId;
  }

  create(consumer, parent, body) {
    if (parent && statusOf(parent) !== 'active') refuseClosed();
    const path = parent ? [...parent.path] : [];
    if (path.length >= DEPTH_MAX) {
      refuse('invalid_request', 'parentId is already at the deepest level.', 'parentId');
    }
    const node = { id: newId('bdg'), consumer, parent, used: 0, windowUsed: 0, began: 0 };
    Object.assign(node, SETTINGS, { closedAt: null, createdAt: now(), path: [...path, node] });
    this.change(node, body);
    this.nodes.set(node.id, node);
    return { node };
  }

  change(node, { limit, window, maxPerCall, maxLease, expiresAt, ...others }) {
    if (statusOf(node) === 'closed') refuseClosed();
    const amounts = { limit, maxPerCall, maxLease };
    for (const [name, amount] of Object.entries(amounts)) {
      if (amount !== undefined) node[name] = amount === null ? null : microsOf(name, amount);
    }
    if (window !== undefined) {
      const isSame = window?.per === node.window?.per;
      if (!isSame) Object.assign(node, { windowUsed: 0, began: 0 });
      node.window = window && { per: window.per, limit: microsOf('window.limit', window.limit) };
    }
    if (expiresAt !== undefined) node.expiresAt = wireTime(expiresAt);
    for (const [name, value] of Object.entries(others)) if (name in SETTINGS) node[name] = value;
  }

  close(node) {
    node.closedAt ??= now();
  }

  createKey(node, { name = null, expiresAt = null }) {
    if (statusOf(node) !== 'active') refuseClosed();
    const key = { id: newId('key'), apiKey: newKey(), node, name, revokedAt: null };
    Object.assign(key, {
      consumer: node.consumer,
      expiresAt: wireTime(expiresAt),
      createdAt: now(),
    });
    this.keys.set(key.apiKey, key);
    return { key };
  }

  /** Undefined when it has ended or its budget has. */
  activeKey(apiKey) {
    const key = this.keys.get(apiKey);
    return key && !hasEnded(key) && statusOf(key.node) === 'active' ? key : undefined;
  }

  /** Whether it can never pay again. */
  hasKeyEnded(key) {
    return hasEnded(key) || statusOf(key.node) === 'closed';
  }

  /**
   * The first refusal of a call, from the root down; undefined when no budget refuses. `isAskable`: an owner can allow
   * the call. `once(refusal)` says whether an approval lets it pass a limit.
   */
  refusalOf({ node: leaf }, { tool, micros, perCall = micros }, once = () => false) {
    const checks = [
      (node) => [this.#ruleAgainst(node, tool), perCallAgainst(node, perCall)],
      (node) => limitsAgainst(node, micros),
    ];
    for (const check of checks) {
      for (const node of leaf.path) {
        const found = check(node).find((each) => each && !once(each));
        if (found) return found;
      }
    }
    return undefined;
  }

  /** What refuses at any amount. */
  #ruleAgainst(node, tool) {
    const { developers, tools, approveDevelopers, approvedDevelopers } = node;
    const asNamed = /^dev_[0-9a-f]{32}\//.test(tool) ? [] : [tool];
    const names = [`${this.#developerId}/${tool}`, ...asNamed];
    const refusal = (code, message, param, facts) => ({
      node,
      code,
      scope: null,
      message,
      param,
      facts: { budgetId: node.id, ...facts },
    });
    if (developers && !developers.includes(this.#developerId)) {
      const message = 'The budget of this key does not allow charges by this developer.';
      return refusal('developer_not_allowed', message);
    }
    if (tools && !names.some((each) => tools.includes(each))) {
      return refusal('tool_not_allowed', 'The budget of this key does not allow the tool.', 'tool');
    }
    if (approveDevelopers && !approvedDevelopers.includes(this.#developerId)) {
      const approvalUrl = `https://fake.farebox.example/console/approvals?budget=${node.id}`;
      const message = 'The owner of this budget has not approved charges by this developer yet.';
      const found = refusal('approval_required', message, undefined, { approvalUrl });
      return { ...found, isAskable: true };
    }
    return undefined;
  }

  /** Whether a hold may take more than it reserves. */
  mayExceed(key, tool) {
    return (
      this.activeKey(key.apiKey) !== undefined &&
      key.node.path.every((node) => !this.#ruleAgainst(node, tool))
    );
  }

  /** Counts at the node and at each above. The result says in which windows. */
  count(key, micros) {
    return (key?.node.path ?? []).map((node) => {
      turn(node);
      node.used += micros;
      if (node.window) node.windowUsed += micros;
      return { node, began: node.began };
    });
  }
}

function perCallAgainst(node, micros) {
  const { maxPerCall } = node;
  if (maxPerCall === null || micros <= maxPerCall) return undefined;
  return limitReached(node, 'per_call', maxPerCall, maxPerCall);
}

/** Each limit of the node that refuses: of the total first. */
function limitsAgainst(node, micros) {
  const left = leftOf(node);
  return [
    micros > left.total && limitReached(node, 'total', node.limit, left.total),
    micros > left.window && limitReached(node, 'window', node.window.limit, left.window),
  ];
}

/** Whether the rule that refused an approval's call would still refuse it. Other rules do not count. */
export function refusesStill({ node, code, scope, developerId, micros }) {
  if (code === 'approval_required') {
    return node.approveDevelopers && !node.approvedDevelopers.includes(developerId);
  }
  if (scope === 'per_call') return perCallAgainst(node, micros) !== undefined;
  return micros > leftOf(node)[scope];
}

/** A window gets back only what it counted. */
export function giveBack(counted, micros) {
  for (const { node, began } of counted) {
    turn(node);
    node.used -= micros;
    if (node.window && node.began === began) node.windowUsed -= micros;
  }
}

export function wireNode(node, own) {
  turn(node);
  const { id, parent, name, used, windowUsed, window, limit, maxPerCall, maxLease } = node;
  const remaining = Math.min(...node.path.flatMap((each) => Object.values(leftOf(each))));
  return {
    id,
    parentId: parent === undefined || node === own ? null : parent.id,
    name,
    status: statusOf(node),
    limit: dollarsOrNull(limit),
    used: used / 1_000_000,
    window: window && {
      per: window.per,
      limit: window.limit / 1_000_000,
      used: windowUsed / 1_000_000,
      resetsAt: new Date(windowEnd(window.per)).toISOString(),
    },
    remaining: remaining === Infinity ? null : Math.max(remaining, 0) / 1_000_000,
    maxPerCall: dollarsOrNull(maxPerCall),
    allowLeases: node.allowLeases,
    maxLease: dollarsOrNull(maxLease),
    tools: node.tools,
    developers: node.developers,
    approveDevelopers: node.approveDevelopers,
    approvedDevelopers: node.approvedDevelopers,
    mayDelegate: node.mayDelegate,
    limitsConsumerKeys: false,
    expiresAt: node.expiresAt,
    metadata: node.metadata,
    createdAt: node.createdAt,
  };
}

export function hasEnded(key) {
  return key.revokedAt !== null || isOver(key);
}

function isOver({ expiresAt }) {
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now();
}

function statusOf({ path }) {
  if (path.some(({ closedAt }) => closedAt !== null)) return 'closed';
  return path.some(isOver) ? 'expired' : 'active';
}

/** Micro-dollars that the limits of the node leave; below 0 when a limit was lowered. */
function leftOf(node) {
  turn(node);
  return {
    total: node.limit === null ? Infinity : node.limit - node.used,
    window: node.window === null ? Infinity : node.window.limit - node.windowUsed,
  };
}

/** A window that is over has counted nothing. */
function turn(node) {
  const began = node.window ? windowBeginning(node.window.per) : 0;
  if (began === node.began) return;
  node.began = began;
  node.windowUsed = 0;
}

/** Calendar windows, in UTC. */
function windowBeginning(per, at = new Date(Date.now())) {
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  if (per === 'hour') return Date.UTC(year, month, day, at.getUTCHours());
  if (per === 'week') return Date.UTC(year, month, day - ((at.getUTCDay() + 6) % 7));
  return Date.UTC(year, month, per === 'month' ? 1 : day);
}

function windowEnd(per) {
  const began = new Date(windowBeginning(per));
  if (per === 'month') return began.setUTCMonth(began.getUTCMonth() + 1);
  return began.getTime() + { hour: 1, day: 24, week: 168 }[per] * 3_600_000;
}

function limitReached(node, scope, limit, left) {
  const remaining = Math.max(left, 0);
  const resetsAt = scope === 'window' ? new Date(windowEnd(node.window.per)).toISOString() : null;
  const raiseUrl = `https://fake.farebox.example/console/approvals?budget=${node.id}&scope=${scope}`;
  return {
    node,
    code: 'spend_limit_reached',
    isAskable: true,
    scope,
    limit,
    message: SAYS[scope](formatDollars(limit), formatDollars(remaining)),
    facts: {
      budgetId: node.id,
      scope,
      limit: limit / 1_000_000,
      remaining: remaining / 1_000_000,
      resetsAt,
      raiseUrl,
    },
  };
}

function dollarsOrNull(micros) {
  return micros === null ? null : micros / 1_000_000;
}

function refuseClosed() {
  refuse(
    'budget_closed',
    'The budget is closed or expired, or one above it is. Create a new one, or set a later expiresAt if it has expired.',
  );
}
