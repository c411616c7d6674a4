/** Where credited money came from: a payment, an operator, or the refund of an earlier charge. */
export const CREDIT_SOURCES = ['top_up', 'adjustment', 'charge_refund'] as const;
