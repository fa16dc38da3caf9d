/** Sample entries of the audit log. */
import { v7 as uuidv7 } from 'uuid'
import { type AuditTarget, insertAuditEntry, type NewAuditEntry } from '../../records/audit-log.ts'
import type { WriteScope } from '../../records/database/scope.ts'

const MINUTE = 60_000

export interface DemoIds {
  ownerId: string
  userIds: string[]
  keyIds: string[]
  webhookIds: string[]
}

export async function insertAuditLog(scope: WriteScope, ids: DemoIds, now: number): Promise<void> {
  const mara = { id: ids.ownerId, fullName: 'Mara Keller' }
  const jonas = { id: ids.userIds[0] ?? '', fullName: 'Jonas Weber' }
  const user = ({ id, fullName }: typeof mara): AuditTarget => ({
    type: 'user',
    id,
    name: fullName,
  })
  const key = (index: number, name: string): AuditTarget => ({
    type: 'api_key',
    id: ids.keyIds[index] ?? '',
    name,
  })
  const webhook = (index: number, name: string): AuditTarget => ({
    type: 'webhook',
    id: ids.webhookIds[index] ?? '',
    name,
  })
  const entries: [
    minutesAgo: number,
    user: typeof mara,
    action: NewAuditEntry['action'],
    target: AuditTarget,
    details?: NewAuditEntry['details'],
  ][] = [
    [7_200, mara, 'api_key.created', key(0, 'Storefront'), { access_level: 'full_access' }],
    [7_195, mara, 'webhook.created', webhook(0, 'The shop'), { event_types: '*' }],
    [5_760, mara, 'user.invited', user(jonas), { role: 'admin' }],
    [5_000, jonas, 'session.started', user(jonas)],
    [4_320, jonas, 'api_key.created', key(2, 'Analytics'), { access_level: 'read_only' }],
    [2_880, jonas, 'webhook.disabled', webhook(2, 'The warehouse')],
    [2_860, jonas, 'webhook.enabled', webhook(2, 'The warehouse')],
    [300, mara, 'webhook.secret_revealed', webhook(0, 'The shop')],
    [12, mara, 'session.started', user(mara)],
  ]
  for (const [minutesAgo, user, action, target, details] of entries) {
    const ip = user === mara ? '203.0.113.7' : '198.51.100.24'
    const at = new Date(now - minutesAgo * MINUTE)
    await insertAuditEntry(scope, { user, action, target, details, ip }, at)
    // The log is in the order of IDs.
    const id = uuidv7({ msecs: at.getTime() })
    await scope.rows('audit_log').where({ created_at: at.getTime() }).update({ id })
  }
}
