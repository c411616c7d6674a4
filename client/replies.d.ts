/** What the service answers. Dollars are JSON numbers; timestamps are ISO 8601 UTC strings. */

export interface PageMarks {
  hasMore: boolean;
  /** For the next page; null on the last one. */
  nextCursor: string | null;
}

export interface BalanceReply {
  /** Dollars that can be spent now. */
  balance: number;
  /** Dollars that refunds and disputes took after they were spent. The next credits pay them. */
  debt: number;
  consumerId: string;
  autoTopUp: { status: 'on' | 'waiting' | 'off'; reason: string | null };
}

export interface ListedCharge {
  id: string;
  tool: string;
  amount: number;
  /** Dollars of it that were refunded so far. */
  refunded: number;
  developerId: string;
  receipt: string;
  createdAt: string;
}

export interface DeveloperChargeReply extends ListedCharge {
  consumerId: string;
  metadata: Record<string, string | number | boolean | null> | null;
}

export interface ChargesReply extends PageMarks {
  charges: DeveloperChargeReply[];
}

export interface UsageReply extends PageMarks {
  charges: ListedCharge[];
  /** Dollars of all charges that match the filter, less the refunds that do. */
  total: number;
}

export interface TopUpReply {
  topUpId: string;
  amount: number;
  /** The balance when this was answered. */
  balance: number;
  status: TopUpRecord['status'];
}

export interface CheckoutReply {
  topUpId: string;
  /** Send the consumer here to pay. */
  sessionUrl?: string;
  status?: TopUpRecord['status'];
}

export interface TopUpRecord {
  id: string;
  amount: number;
  status:
    | 'pending'
    | 'completed'
    | 'failed'
    | 'expired'
    | 'refunded'
    | 'partially_refunded'
    | 'disputed'
    | 'charged_back';
  method: 'direct' | 'checkout' | 'manual';
  automatic: boolean;
  createdAt: string;
  completedAt: string | null;
  failure: { code: string; message: string } | null;
  /** While it can still be paid. */
  sessionUrl?: string;
}

export interface TopUpsReply extends PageMarks {
  topUps: TopUpRecord[];
}

export interface DeveloperTopUpsReply extends PageMarks {
  topUps: {
    id: string;
    consumerId: string;
    amount: number;
    status: string;
    createdAt: string;
    /** Dollars of it that were spent on your tools. */
    charged: number;
    /** In how many charges. */
    charges: number;
  }[];
}

export interface ToolReply {
  /** `tool_...` */
  id: string;
  name: string;
  description: string;
  /** Dollars per call; null: each charge names its amount. */
  price: number | null;
  createdAt: string;
}

export interface ChangedToolReply extends ToolReply {
  archived: boolean;
}

export interface ToolsReply {
  tools: (Omit<ToolReply, 'createdAt'> & { totalCharges: number; totalRevenue: number })[];
}

export interface EarningsReply {
  developerId: string;
  totalEarnings: number;
  /** Since 00:00 UTC. */
  todayEarnings: number;
  byTool: Record<string, number>;
  /** With `interval`. */
  series?: { from: string; earnings: number; charges: number }[];
}

interface StatementHead {
  /** Such as `2026-11`. */
  month: string;
  from: string;
  to: string;
  /** Whether the month is over. */
  complete: boolean;
}

export interface ConsumerStatementReply extends StatementHead {
  consumerId: string;
  openingBalance: number;
  movements: {
    kind: string;
    amount: number;
    topUpId: string | null;
    reason: string | null;
    createdAt: string;
  }[];
  charges: { tool: string; charges: number; amount: number }[];
  closingBalance: number;
}

export interface DeveloperStatementReply extends StatementHead {
  developerId: string;
  openingEarnings: number;
  earned: { day: string; tool: string; charges: number; amount: number }[];
  refunds: { day: string; tool: string; refunds: number; amount: number }[];
  closingEarnings: number;
}
