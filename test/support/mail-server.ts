/**
 * A mail server on loopback that asks for a password, keeps what it accepts, and refuses recipients and
 * senders at `refused.example`.
 */
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

export interface ReceivedMail {
  readonly from: string;
  readonly recipients: readonly string[];
  /** Headers and body, as sent. */
  readonly raw: string;
}

/** The reply to a recipient, with its code. */
interface RecipientReply {
  readonly code: number;
  readonly text: string;
}

/** On a port of its own, unless told which. */
export async function startMailServer(ownPort = 0) {
  let recipientReply: RecipientReply | undefined;
  /** While it hangs: greets the clients that are connected. */
  let greetings: (() => void)[] | undefined;
  let [connections, connectionsMost] = [0, 0];
  const mails: ReceivedMail[] = [];
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    onConnect(_session, done) {
      connections += 1;
      connectionsMost = Math.max(connectionsMost, connections);
      if (greetings) greetings.push(() => done());
      else done();
    },
    onClose: () => void (connections -= 1),
    onAuth({ username, password }, _session, done) {
      if (username === 'farebox' && password === 'p@ss') done(null, { user: username });
      else done(new Error('wrong user or password'));
    },
    onMailFrom({ address }, _session, done) {
      done(address.endsWith('@refused.example') ? new Error('sender not allowed') : null);
    },
    onRcptTo({ address }, _session, done) {
      const { code, text } = recipientReply ?? { code: 550, text: 'no such user' };
      if (!recipientReply && !address.endsWith('@refused.example')) return done(null);
      done(Object.assign(new Error(text), { responseCode: code }));
    },
    onData(stream, { envelope: { mailFrom, rcptTo } }, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', done);
      stream.on('end', () => {
        const recipients = rcptTo.map(({ address }) => address);
        const raw = Buffer.concat(chunks).toString();
        mails.push({ from: mailFrom ? mailFrom.address : '', recipients, raw });
        done();
      });
    },
  });
  await new Promise<void>((resolve) => server.listen(ownPort, '127.0.0.1', resolve));
  const { port } = server.server.address() as AddressInfo;
  return {
    mails,
    /** The most connections that were open at once. */
    connectionsMost: () => connectionsMost,
    /** Greets nobody, until the returned function is called. */
    hang(): () => void {
      greetings = [];
      return () => {
        for (const greet of greetings ?? []) greet();
        greetings = undefined;
      };
    },
    /** Refuses every recipient with this reply. Undefined: accepts them again. */
    refuseAll: (reply: RecipientReply | undefined) => void (recipientReply = reply),
    urlFor: (password: string) =>
      `smtp://farebox:${encodeURIComponent(password)}@127.0.0.1:${port}`,
    stop: () => new Promise<void>((resolve) => server.close(resolve)),
  };
}
