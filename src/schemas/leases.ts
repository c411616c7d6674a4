/** Schemas of leases, their renewal and their settlements. */
import { Type, type Static } from 'typebox';
import { HOLD_SECONDS_MAX } from '../domain/hold.ts';
import {
  LEASE_SECONDS_DEFAULT,
  LEASE_STATUSES,
  LEASED_TOOLS_MAX,
  SEQUENCE_MAX,
  SETTLED_MAX,
} from '../domain/lease.ts';
import { ChargeBody, Metadata } from './charges.ts';
import { ErrorReply } from './errors.ts';
import {
  Closed,
  Count,
  Dollars,
  DollarsAsked,
  Id,
  pageMarks,
  Text,
  TimeOf,
  Timestamp,
  ToolName,
  Word,
} from './shapes.ts';

const Seconds = (description: string) =>
  Type.Integer({
    minimum: 1,
    maximum: HOLD_SECONDS_MAX,
    description: `${description} Default: ${LEASE_SECONDS_DEFAULT}.`,
    examples: [300],
  });
const Fence = Type.Integer({
  minimum: 1,
  maximum: SEQUENCE_MAX,
  description:
    'The fence that you hold. If the lease has since been renewed, the request is refused.',
  examples: [1],
});

const AskedTool = Closed({
  name: ToolName,
  price: Type.Optional(DollarsAsked('Dollars of a call. Default: the registered price.')),
});

export const LeaseBody = Closed({
  apiKey: ChargeBody.properties.apiKey,
  tools: Type.Array(Type.Union([ToolName, AskedTool]), {
    minItems: 1,
    maxItems: LEASED_TOOLS_MAX,
    description:
      'The tools that can be called: names, or objects with a `name` and the most that a call costs.',
    examples: [['search', { name: 'summarize', price: 0.5 }]],
  }),
  amount: DollarsAsked('Dollars to reserve.', 2),
  expiresIn: Type.Optional(Seconds('Seconds until the lease expires.')),
});
export type LeaseBody = Static<typeof LeaseBody>;

export const RenewBody = Closed({
  expiresIn: Type.Optional(Seconds('Seconds from now until the lease expires.')),
  fence: Type.Optional(Fence),
});
export type RenewBody = Static<typeof RenewBody>;

const Sequence = Type.Integer({
  minimum: 1,
  maximum: SEQUENCE_MAX,
  description:
    'The number of the call within the lease. It identifies the charge: the same number is charged once.',
  examples: [1],
});

/** Open: the client's `unsettled` entries, which also name their lease, can be sent as they are. */
export const SettlementEntry = Type.Object({
  sequence: Sequence,
  tool: ToolName,
  amount: DollarsAsked(
    'Dollars to charge: at most the highest price that the tool has had in the lease.',
  ),
  metadata: Type.Optional(Metadata),
});

export const SettlementBody = Closed({
  entries: Type.Array(SettlementEntry, {
    maxItems: SETTLED_MAX,
    description: 'The calls, in any order and with any gaps.',
  }),
  fence: Type.Optional(Fence),
  final: Type.Optional(
    Type.Boolean({
      description: 'Whether to release what is left afterwards. Default: false.',
      examples: [false],
    }),
  ),
});

/** Each entry is checked separately, so that a malformed one does not fail the others. */
export const SettlementEnvelope = Closed({
  ...SettlementBody.properties,
  entries: Type.Array(Type.Unknown(), { maxItems: SETTLED_MAX }),
});
export type SettlementEnvelope = Static<typeof SettlementEnvelope>;

const leaseFields = {
  id: Id('lease', 'The id of the lease.'),
  status: Word(LEASE_STATUSES, 'The state of the lease.'),
  amount: Dollars('Dollars reserved.', 2),
  settled: Dollars('Dollars charged so far.', 0.5),
  released: Dollars('Dollars given back to the balance.', 0),
  remaining: Dollars('Dollars still reserved. 0 once the lease is closed.', 1.5),
  expiresAt: TimeOf('When it expires, in UTC. Until then, your server may decide calls.'),
  expiresIn: Type.Number({
    description: 'Seconds from now until it expires, for clients whose clock may be wrong.',
    examples: [300],
  }),
  fence: Count('The number of the current holder. It rises with each renewal.', 1),
  tools: Type.Array(
    Closed({
      name: Text('The name of the tool.', 'search'),
      price: Dollars(
        'The price of a call since the latest renewal. Calls at a higher price that the lease had before can still be settled.',
        0.02,
      ),
    }),
    { description: 'The tools that can be called.' },
  ),
  createdAt: Timestamp,
  consumerId: Id('consumer', 'The consumer whose balance is reserved.'),
  developerId: Id('developer', 'The developer who holds the lease.'),
};

export const LeaseReply = Closed(leaseFields);
export type LeaseReply = Static<typeof LeaseReply>;

export const PlacedLeaseReply = Closed({
  ...leaseFields,
  balance: Dollars("The consumer's balance after the lease was taken.", 8),
});
export type PlacedLeaseReply = Static<typeof PlacedLeaseReply>;

const SettledMember = Closed({
  sequence: Sequence,
  status: Type.Literal(201),
  replayed: Type.Optional(Type.Literal(true, { description: 'The entry was settled before.' })),
  id: Id('charge', 'The id of the charge.'),
  receipt: Text('The signed receipt.', 'hmac_sha256.1.eyJpZCI6ImNoZ18wMWEx.S_fwtwsOLfxpQ8Dt'),
  tool: Text('The name of the tool.', 'search'),
  amount: Dollars('Dollars charged.', 0.02),
  createdAt: Timestamp,
});
const RefusedMember = Closed({
  sequence: Type.Optional(
    Type.Integer({ ...Sequence, description: 'The number of the call, unless it is malformed.' }),
  ),
  status: Type.Integer({ minimum: 400, maximum: 499, examples: [402] }),
  ...ErrorReply.properties,
});
export type SettlementMember = Static<typeof SettledMember> | Static<typeof RefusedMember>;

export const SettlementReply = Closed({
  results: Type.Array(Type.Union([SettledMember, RefusedMember]), {
    description: 'One result for each entry, in the order of the request.',
  }),
  lease: LeaseReply,
});
export type SettlementReply = Static<typeof SettlementReply>;

export const LeasesReply = Closed({ leases: Type.Array(LeaseReply), ...pageMarks });
export type LeasesReply = Static<typeof LeasesReply>;
