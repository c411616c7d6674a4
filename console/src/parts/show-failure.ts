/**
 * A failure of something that has no place of its own on the page. It stays until it is closed: nobody has to
 * be quick.
 */
import { notifications } from '@mantine/notifications';

export function showFailure(message: string): void {
  notifications.show({ color: 'red', message, autoClose: false });
}
