/** A developer's own settings: the page to which people return after they topped up through a refusal's link. */
import type { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import {
  RETURN_URL_MAX,
  type DeveloperChanges,
  type DeveloperReply,
} from '../../../schemas/developers.ts';
import { findReturnUrl, setReturnUrl } from '../../../store/accounts/return-urls.ts';
import type { Connection } from '../../../store/database.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import type { Api } from '../../services.ts';

export async function getDeveloper(
  { database }: { readonly database: Connection },
  { caller }: Pick<Request, 'caller'>,
): Promise<Reply<DeveloperReply>> {
  return {
    status: 200,
    body: {
      developerId: wireId('developer', caller.developerId),
      returnUrl: await findReturnUrl(database, caller.developerId),
    },
  };
}

/** Omitted members are not changed. If the reply cannot be read, nothing is. */
export async function patchDeveloper(
  api: Api,
  request: Request<DeveloperChanges>,
): Promise<Reply<DeveloperReply>> {
  const { returnUrl } = request.body;
  if (returnUrl === undefined) return getDeveloper(api, request);
  const url = returnUrl === null ? null : checkedUrl(returnUrl);
  return api.database.transaction(async (database) => {
    await setReturnUrl(database, request.caller.developerId, url);
    return getDeveloper({ database }, request);
  });
}

/** People are sent there from a page where they just paid, so it must be encrypted, or on this machine. */
function checkedUrl(text: string): string {
  const url = URL.parse(text);
  const isLoopback = url !== null && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback);
  if (!url || !isSafe || url.username !== '' || url.password !== '') {
    throw invalid('must be an https URL without a user name, such as https://example.com/chat.');
  }
  if (url.href.length > RETURN_URL_MAX) {
    throw invalid(`must have at most ${RETURN_URL_MAX} characters once it is percent-encoded.`);
  }
  return url.href;
}

function invalid(problem: string): ApiError {
  return invalidField('returnUrl', `returnUrl ${problem}`);
}
