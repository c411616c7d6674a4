/** Links for operators: to the workflow in the Temporal UI, and to the payment in Stripe's dashboard. */
import { dashboardUrlOf } from '../../../stripe/dashboard.ts';
import type { Api } from '../../services.ts';

interface Payment {
  readonly paymentIntentId: string | null;
  readonly sessionId?: string | null;
}

export function linksOf({ config }: Api, workflowId: string, payment: Payment) {
  const { uiUrl, namespace } = config.temporal;
  const workflow = encodeURIComponent(workflowId);
  return {
    temporalUrl:
      uiUrl === undefined
        ? null
        : `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${workflow}`,
    processorUrl: paymentUrlOf(dashboardUrlOf(config.stripe), payment),
  };
}

function paymentUrlOf(
  dashboard: string | null,
  { paymentIntentId, sessionId = null }: Payment,
): string | null {
  if (dashboard === null) return null;
  if (paymentIntentId !== null) return `${dashboard}/payments/${paymentIntentId}`;
  return sessionId === null ? null : `${dashboard}/search?query=${sessionId}`;
}

export function customerUrlOf({ config }: Api, customerId: string | null): string | null {
  const dashboard = dashboardUrlOf(config.stripe);
  return dashboard === null || customerId === null ? null : `${dashboard}/customers/${customerId}`;
}
