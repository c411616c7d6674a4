/** The developer's earnings as they come in: an event whenever they have changed. */
import type { OpenStream, Request } from '../../endpoint.ts';
import { credentialOf } from '../../authenticate.ts';
import type { Api } from '../../services.ts';

export function streamEarnings({ earnings }: Api, { caller }: Request, open: OpenStream): void {
  earnings.listen(caller, credentialOf(caller), open);
}
